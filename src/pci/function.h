// SPDX-License-Identifier: Apache-2.0
#pragma once

// One PCI function as its sysfs folder has it, without the rest of its group. Inside src/pci only.
// A file that is missing or malformed is an error that names it: nothing is filled with a guess.

#include <optional>
#include <vector>

#include "base/pci_address.h"
#include "base/status.h"
#include "pci/inventory.h"
#include "pci/sysfs.h"

namespace switchyard::pci {

[[nodiscard]] Result<std::uint16_t> ReadVendor(const Folder& function);

// The number behind the link "iommu_group"; absent without the link (no IOMMU).
[[nodiscard]] Result<std::optional<int>> ReadIommuGroup(const Folder& function);
[[nodiscard]] Result<std::optional<int>> ReadIommuGroup(const std::string& link);  // its path

// How much of a function is read. Each file costs three system calls, and Allocate waits for them.
enum class Detail {
  kAll,       // all but the BARs. The NUMA node must be there for GPUs and NVSwitches
  kHandover,  // what decides whether it can be handed over, and as what: no device id, no NUMA node
  // The same on a host without iommufd, where a function has no use for a cdev: on a driver that is
  // known to be a vfio driver, vfio-dev is not looked at.
  kLegacyHandover
};
// `scanned` may be null. Vendor and class are taken from it as long as the folder is the same one.
[[nodiscard]] Result<Function> ReadFunction(const Folder& function, const PciAddress& address,
                                            Detail detail, const Function* scanned = nullptr);

// The memory BARs; none if there is no file "resource".
[[nodiscard]] Result<std::vector<Bar>> ReadBars(const Folder& function);

}  // namespace switchyard::pci
