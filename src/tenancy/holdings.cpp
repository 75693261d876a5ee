// SPDX-License-Identifier: Apache-2.0
#include "tenancy/holdings.h"

#include <set>
#include <utility>

namespace switchyard::tenancy {

std::uint64_t Holdings::Add(std::span<const PciAddress> devices, absl::Duration now) {
  const std::uint64_t id = next_id_++;
  for (const PciAddress& address : devices) own_[address] = {id, now};
  return id;
}

void Holdings::Release(std::uint64_t grant_id) {
  std::erase_if(own_, [&](const auto& entry) { return entry.second.grant_id == grant_id; });
}

void Holdings::SetView(Assignments view, absl::Duration read_started) {
  view_ = std::move(view);
  std::erase_if(own_, [&](const auto& entry) {
    return view_.contains(entry.first) || entry.second.granted_at + kGrantSettles <= read_started;
  });
}

std::vector<PciAddress> Holdings::Held() const {
  std::set<PciAddress> held;
  for (const auto& [address, owner] : view_) held.insert(address);
  for (const auto& [address, own] : own_) held.insert(address);
  return {held.begin(), held.end()};
}

}  // namespace switchyard::tenancy
