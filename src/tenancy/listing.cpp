// SPDX-License-Identifier: Apache-2.0
#include "tenancy/listing.h"

#include <algorithm>

namespace switchyard::tenancy {

const Listing::Entry* Listing::OwnerOfAll(fabric::ModuleSet wanted) const {
  for (const Entry& entry : entries) {
    if (entry.modules.ContainsAll(wanted)) return &entry;
  }
  return nullptr;
}

Listing MakeListing(const Assignments& view, absl::Duration read_started, const Board& board,
                    const fabric::ModuleMap& map) {
  Listing listing;
  listing.known = true;
  listing.read_started = read_started;
  for (const auto& [address, owner] : view) {
    fabric::ModuleSet modules = board.ModulesOf(address);
    if (const auto module = map.ModuleOf(address)) modules.Insert(*module);
    if (modules.empty()) continue;
    auto entry = std::find_if(listing.entries.begin(), listing.entries.end(),
                              [&](const Listing::Entry& e) { return e.owner == owner; });
    if (entry == listing.entries.end()) entry = listing.entries.insert(entry, {owner, {}, {}});
    entry->modules = entry->modules | modules;
    entry->devices.push_back(address);
    listing.modules = listing.modules | modules;
  }
  return listing;
}

}  // namespace switchyard::tenancy
