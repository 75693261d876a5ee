// SPDX-License-Identifier: Apache-2.0
#pragma once

// Why a VM can't have a device now, in words that say what to do. Inside src/pci only. Asked when a
// device has been read; each is one more look at sysfs, and most of them only where something is
// wrong. What the kernel shows in between (bind, unbind) was seen of Linux 6.12:
// docs/kernel-tests.md.

#include <optional>
#include <string>
#include <vector>

#include "base/host_root.h"
#include "pci/inventory.h"

namespace switchyard::pci {

// "0000:01:00.1 of IOMMU group 12".
[[nodiscard]] std::string OfGroup(absl::string_view member, int group);

// Why this device itself can't be opened by a VM's monitor.
[[nodiscard]] std::vector<std::string> OwnReasons(const HostRoot& root, const Function& self);

// Why this member keeps the group from a VM; absent if it doesn't.
[[nodiscard]] std::optional<std::string> MemberReason(const Function& member, int group);

}  // namespace switchyard::pci
