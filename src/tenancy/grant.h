// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a tenancy hands over, per device: made anew from the PCI addresses each time, since group
// and vfio numbers change over a reboot. src/kube makes environment, device nodes and CDI names of
// it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/pci_address.h"
#include "pci/inventory.h"

namespace switchyard::tenancy {

struct GrantedFunction {
  PciAddress address;
  std::optional<std::string> cdev;  // "vfio3": /dev/vfio/devices/vfio3, for backend iommufd
};

struct GrantedDevice {
  PciAddress address;  // as requested
  pci::Backend backend = pci::Backend::kLegacy;
  int iommu_group = 0;
  std::vector<GrantedFunction>
      functions;  // every function of the group on a vfio driver, by address
};

struct Grant {
  std::uint64_t id = 0;
  std::vector<GrantedDevice> devices;  // in request order
  std::optional<int> partition;        // the partition they are, where a fabric is known
};

}  // namespace switchyard::tenancy
