// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which device stands for which modules: how views that speak of PCI addresses become bits. Made
// from the inventory and the module map whenever one of them changes. A plain value.

#include <vector>

#include "base/pci_address.h"
#include "fabric/module_map.h"
#include "fabric/module_set.h"
#include "pci/inventory.h"
#include "tenancy/record.h"

namespace switchyard::tenancy {

struct Board {
  struct Device {
    PciAddress address;         // as kubelet knows it
    fabric::ModuleSet modules;  // more than one where GPUs share an IOMMU group
    bool mapped = true;         // every GPU of it has a module id
    TenancyDevice nodes;        // as the last scan found it; no functions: not on vfio
  };
  std::vector<Device> devices;  // GPUs, ascending address

  [[nodiscard]] const Device* Find(const PciAddress& address) const;
  [[nodiscard]] fabric::ModuleSet ModulesOf(const PciAddress& address) const;  // none: not there
};

// `inventory` may be null: none yet.
[[nodiscard]] Board MakeBoard(const pci::Inventory* inventory, const fabric::ModuleMap& map);

// The nodes of a scanned device. Cdevs only where they are handed over, which is with iommufd.
[[nodiscard]] TenancyDevice NodesOf(const pci::Device& device);

}  // namespace switchyard::tenancy
