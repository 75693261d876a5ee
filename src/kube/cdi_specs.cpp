// SPDX-License-Identifier: Apache-2.0
#include "kube/cdi_specs.h"

#include "absl/strings/str_cat.h"
#include "cdi/cdi_spec.h"

namespace switchyard::kube {

Status WriteCdiSpecs(const std::string& folder, const Offer& offer) {
  Status first;
  for (const std::string& name : offer.retired) {
    const Status removed = cdi::WriteSpec(folder, {name, {}});
    // A name that is no CDI kind never had a file.
    if (!absl::IsInvalidArgument(removed)) first.Update(removed);
  }
  for (const Resource& resource : offer.resources) {
    cdi::CdiSpec spec{resource.name, {}};
    for (const OfferedDevice& device : resource.devices) {
      if (!device.cdi_nodes.empty()) spec.devices.push_back({device.id, device.cdi_nodes});
    }
    first.Update(
        Annotate(cdi::WriteSpec(folder, spec),
                 absl::StrCat("CDI file of ", resource.name, " (Kata can't find its devices)")));
  }
  return first;
}

}  // namespace switchyard::kube
