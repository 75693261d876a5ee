// SPDX-License-Identifier: Apache-2.0
#pragma once

// The part of a resource name after "nvidia.com/": the configured name of the device id, else the
// alias of the kind, else the name pci.ids knows, made fit, else the device id in hexadecimal.
// Immutable once made; any thread.

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "base/status.h"
#include "kube/contract.h"
#include "pci/pci_ids.h"

namespace switchyard::kube {

inline constexpr char kResourceVendor[] = "nvidia.com";

enum class Hyphens { kRemove, kKeep };

class ResourceNames {
 public:
  // kInvalidArgument names a configured name that Kubernetes would refuse, or one that GPUs and
  // NVSwitches would share.
  [[nodiscard]] static Result<ResourceNames> Make(NamingOptions options, pci::PciIds ids,
                                                  Hyphens hyphens);

  // "nvidia.com/GH100_H100_SXM5_80GB"
  [[nodiscard]] std::string Name(DeviceKind kind, std::uint16_t device) const;

 private:
  ResourceNames(NamingOptions options, pci::PciIds ids, Hyphens hyphens)
      : options_(std::move(options)), ids_(std::move(ids)), hyphens_(hyphens) {}

  NamingOptions options_;
  pci::PciIds ids_;
  Hyphens hyphens_;
};

// A model's name as both predecessors spell it: upper case; "/" and "." to "_"; each run of white
// space to "_"; every other character outside [A-Z0-9_] removed, with kKeep except "-".
[[nodiscard]] std::string SpellModel(absl::string_view pci_ids_name, Hyphens hyphens);

// Whether Kubernetes takes `name` after the slash of an extended resource: 1..63 characters of
// [A-Za-z0-9_.-], the first and the last one a letter or digit.
[[nodiscard]] bool IsResourceName(absl::string_view name);

}  // namespace switchyard::kube
