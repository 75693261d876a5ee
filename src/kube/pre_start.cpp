// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "k8s_deviceplugin_v1beta1.pb.h"
#include "kube/admission.h"

namespace switchyard::kube {
namespace {

Result<std::vector<PciAddress>> Addresses(const Resource& resource,
                                          const v1beta1::PreStartContainerRequest& request) {
  if (request.devices_ids().empty())
    return absl::InvalidArgumentError("no device ids: nothing can be said of them");
  std::vector<PciAddress> addresses;
  addresses.reserve(static_cast<size_t>(request.devices_ids_size()));
  for (const std::string& id : request.devices_ids()) {
    const OfferedDevice* device = resource.FindById(id);
    if (device == nullptr) {
      return absl::NotFoundError(
          absl::StrCat("device id ", id,
                       " is no device of this node any more, so what it stood for is not known; "
                       "delete the pod, its controller makes a new one"));
    }
    addresses.push_back(device->address);
  }
  return addresses;
}

}  // namespace

Status PreStart(const AdmissionParts& parts, const Resource& resource,
                const v1beta1::PreStartContainerRequest& request) {
  const Result<std::vector<PciAddress>> addresses = Addresses(resource, request);
  const Status status = addresses.ok() ? parts.tenancies->PreStart(*addresses) : addresses.status();
  Event event{"pre_start", Severity::kInfo, "a container may start with its devices", {}};
  if (!status.ok()) {
    event.name = "pre_start_failed";
    event.severity = Severity::kError;
    event.message = std::string(status.message());
  }
  event.fields = {{"resource", resource.name}, {"ids", absl::StrJoin(request.devices_ids(), ",")}};
  parts.events->Report(event);
  return Annotate(status, resource.name);
}

}  // namespace switchyard::kube
