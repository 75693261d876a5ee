// SPDX-License-Identifier: Apache-2.0
#include "tenancy/picture.h"

#include <utility>

#include "fabric/planner.h"

namespace switchyard::tenancy {
namespace {

Picture::Device Describe(const pci::Device& device, const fabric::ModuleMap& map) {
  Picture::Device described;
  described.numa_node = device.self.numa_node;
  described.mapped = device.self.IsGpu();
  for (const pci::Function& member : device.members) {
    if (!member.IsGpu()) continue;
    if (const auto module = map.ModuleOf(member.address)) {
      described.modules.Insert(*module);
    } else {
      described.mapped = false;
    }
  }
  return described;
}

}  // namespace

const Picture::Device* Picture::Find(const PciAddress& address) const {
  const auto found = devices.find(address);
  return found == devices.end() ? nullptr : &found->second;
}

fabric::ModuleSet Picture::ModulesOf(const PciAddress& address) const {
  if (const Device* device = Find(address)) return device->modules;
  const auto module = fabric->map.ModuleOf(address);
  return module ? fabric::ModuleSet{*module} : fabric::ModuleSet{};
}

std::shared_ptr<const Picture> MakePicture(const pci::Inventory* inventory,
                                           std::shared_ptr<const FabricKnowledge> fabric) {
  auto picture = std::make_shared<Picture>();
  picture->fabric = std::move(fabric);
  picture->numa_node = fabric::PlanRequest::UnknownNodes();
  if (inventory == nullptr) return picture;
  const fabric::ModuleMap& map = picture->fabric->map;
  for (const pci::Device& device : inventory->devices) {
    Picture::Device described = Describe(device, map);
    if (const auto module = map.ModuleOf(device.address()); module && device.self.IsGpu()) {
      picture->numa_node[static_cast<size_t>(*module)] = device.self.numa_node.value_or(-1);
    }
    if (device.ready() && described.mapped) {
      picture->usable = picture->usable | described.modules;
    }
    if (described.modules.size() > 1 && device.address() == device.Lead()) {
      picture->shared_groups.push_back(described.modules);
    }
    picture->devices.emplace(device.address(), described);
  }
  return picture;
}

}  // namespace switchyard::tenancy
