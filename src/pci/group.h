// SPDX-License-Identifier: Apache-2.0
#pragma once

// A device's IOMMU group, the unit of isolation: who is in it, and whether a VM could have it.
// Inside src/pci only. VFIO lets nobody open a group while one of its functions is on a driver of
// the host (kernel, Documentation/driver-api/vfio.rst).

#include <set>
#include <string>

#include "base/host_root.h"
#include "pci/function.h"
#include "pci/inventory.h"

namespace switchyard::pci {

inline constexpr absl::string_view kBusFolder = "sys/bus/pci/devices";

// Whether devices with a cdev can be handed over by it: /dev/iommu exists.
[[nodiscard]] bool HostHasIommufd(const HostRoot& root);

// Names under sys/kernel/iommu_groups/<group>/devices; none if that can't be listed.
[[nodiscard]] std::set<std::string> ListedInGroup(const HostRoot& root, int group);

// Names on the bus whose own link says `group`. Reads the whole bus; fails if any function's link
// can't be read, since that one may be a member.
[[nodiscard]] Result<std::set<std::string>> LinkedToGroup(const HostRoot& root, int group);

// The device with its members read, its backend and its problem. `names`: every function that may
// be in the group, with or without `self`.
[[nodiscard]] Device WithGroup(const HostRoot& root, Function self,
                               const std::set<std::string>& names, Detail detail);

}  // namespace switchyard::pci
