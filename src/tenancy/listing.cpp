// SPDX-License-Identifier: Apache-2.0
#include "tenancy/listing.h"

#include <algorithm>

namespace switchyard::tenancy {

const Listing::Entry* Listing::OwnerOfAll(fabric::ModuleSet wanted) const {
  for (const Entry& entry : entries) {
    if (entry.sure.ContainsAll(wanted)) return &entry;
  }
  return nullptr;
}

namespace {

fabric::ModuleSet WithoutGpu(const Board& board, const fabric::ModuleMap& map) {
  fabric::ModuleSet modules = fabric::ModuleSet::FirstN(fabric::kMaxModule);
  for (const auto& [address, entry] : map.entries()) modules.Erase(entry.module);
  for (const Board::Device& device : board.devices) modules = modules - device.modules;
  return modules;
}

struct Listed {
  fabric::ModuleSet modules;
  fabric::ModuleSet sure;
};

Listed ModulesOf(const PciAddress& address, const Board& board, const fabric::ModuleMap& map,
                 const Ledger& ledger) {
  fabric::ModuleSet modules = board.ModulesOf(address);
  if (const auto module = map.ModuleOf(address)) modules.Insert(*module);
  if (const TenancyRecord* record = ledger.FindByDevice(address)) {
    const bool agrees = !modules.empty() && record->modules.ContainsAll(modules);
    if (agrees) return {modules, modules};
    return {modules | record->modules, record->modules};
  }
  const Board::Device* device = board.Find(address);
  const bool unknown = device != nullptr && !device->mapped;
  return {unknown ? modules | WithoutGpu(board, map) : modules, modules};
}

}  // namespace

Listing MakeListing(const AssignmentView& view, absl::Duration read_started, const Board& board,
                    const fabric::ModuleMap& map, const Ledger& ledger) {
  Listing listing;
  listing.known = true;
  listing.whole = view.whole;
  listing.read_started = read_started;
  for (const auto& [address, owner] : view.devices) {
    const Listed listed = ModulesOf(address, board, map, ledger);
    if (listed.modules.empty()) continue;
    auto entry = std::find_if(listing.entries.begin(), listing.entries.end(),
                              [&](const Listing::Entry& e) { return e.owner == owner; });
    if (entry == listing.entries.end()) entry = listing.entries.insert(entry, {owner, {}, {}, {}});
    entry->modules = entry->modules | listed.modules;
    entry->sure = entry->sure | listed.sure;
    entry->devices.push_back(address);
    listing.modules = listing.modules | listed.modules;
    listing.sure = listing.sure | listed.sure;
  }
  return listing;
}

}  // namespace switchyard::tenancy
