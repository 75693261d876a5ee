// SPDX-License-Identifier: Apache-2.0
#include "tenancy/board.h"

#include <algorithm>

namespace switchyard::tenancy {

const Board::Device* Board::Find(const PciAddress& address) const {
  const auto found = std::lower_bound(
      devices.begin(), devices.end(), address,
      [](const Device& device, const PciAddress& a) { return device.address < a; });
  return found == devices.end() || found->address != address ? nullptr : &*found;
}

fabric::ModuleSet Board::ModulesOf(const PciAddress& address) const {
  const Device* device = Find(address);
  return device == nullptr ? fabric::ModuleSet{} : device->modules;
}

TenancyDevice NodesOf(const pci::Device& device) {
  TenancyDevice nodes;
  nodes.address = device.address();
  nodes.backend = device.backend.value_or(pci::Backend::kLegacy);
  nodes.iommu_group = device.self.iommu_group.value_or(0);
  for (const pci::Function& member : device.members) {
    if (!member.on_vfio) continue;
    const bool by_cdev = nodes.backend == pci::Backend::kIommufd;
    nodes.functions.push_back(
        {member.address, by_cdev ? member.vfio_cdev.value_or("") : "", std::nullopt});
  }
  return nodes;
}

Board MakeBoard(const pci::Inventory* inventory, const fabric::ModuleMap& map) {
  Board board;
  if (inventory == nullptr) return board;
  for (const pci::Device& device : inventory->devices) {
    if (!device.self.IsGpu() || device.address() != device.Lead()) continue;
    Board::Device made{device.address(), {}, true, NodesOf(device)};
    for (const pci::Function& member : device.members) {
      if (!member.IsGpu()) continue;
      if (const auto module = map.ModuleOf(member.address)) {
        made.modules.Insert(*module);
      } else {
        made.mapped = false;
      }
    }
    board.devices.push_back(std::move(made));
  }
  return board;
}

}  // namespace switchyard::tenancy
