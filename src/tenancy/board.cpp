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

std::vector<PciAddress> Board::AddressesOf(fabric::ModuleSet modules) const {
  std::vector<PciAddress> addresses;
  addresses.reserve(static_cast<size_t>(modules.size()));
  for (const Device& device : devices) {
    if (device.modules.Overlaps(modules)) addresses.push_back(device.address);
  }
  return addresses;
}

}  // namespace switchyard::tenancy
