// SPDX-License-Identifier: Apache-2.0
#include "sim/demo/placement.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace switchyard::sim {
namespace {

std::set<int> Members(const BoardPartition& partition) {
  return {partition.modules.begin(), partition.modules.end()};
}

// The lowest partition of that size that holds the module, as an index; -1 if there is none.
int GroupOf(const Board& board, std::size_t size, int module) {
  for (std::size_t i = 0; i < board.partitions.size(); ++i) {
    const BoardPartition& partition = board.partitions[i];
    if (partition.modules.size() == size && Members(partition).contains(module)) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

}  // namespace

std::set<int> Placement::Free() const {
  std::set<int> free;
  for (const BoardDevice& device : board_->devices) {
    if (!HolderOf(device.module)) free.insert(device.module);
  }
  return free;
}

std::set<int> Placement::ModulesOf(char pod) const {
  const auto found = pods_.find(pod);
  return found == pods_.end() ? std::set<int>{} : found->second;
}

std::optional<char> Placement::HolderOf(int module) const {
  for (const auto& [pod, modules] : pods_) {
    if (modules.contains(module)) return pod;
  }
  return std::nullopt;
}

std::optional<int> Placement::FreePartition(int size) const {
  const std::set<int> free = Free();
  for (const BoardPartition& partition : board_->partitions) {
    const std::set<int> members = Members(partition);
    if (static_cast<int>(members.size()) == size &&
        std::includes(free.begin(), free.end(), members.begin(), members.end())) {
      return partition.id;
    }
  }
  return std::nullopt;
}

std::optional<int> Placement::PartitionOf(const std::set<int>& modules) const {
  for (const BoardPartition& partition : board_->partitions) {
    if (Members(partition) == modules) return partition.id;
  }
  return std::nullopt;
}

std::string Placement::Describe(const std::set<int>& modules) const {
  if (modules.empty()) return "not placed";
  const std::optional<int> partition = PartitionOf(modules);
  return absl::StrCat("modules ", absl::StrJoin(modules, ","), " = ",
                      partition ? absl::StrCat("partition ", *partition) : "no partition");
}

std::string Placement::Picture() const {
  std::vector<int> order;
  order.reserve(board_->devices.size());
  for (const BoardDevice& device : board_->devices) order.push_back(device.module);
  const auto place = [&](int module) {
    return std::vector<int>{GroupOf(*board_, 8, module), GroupOf(*board_, 4, module),
                            GroupOf(*board_, 2, module), module};
  };
  std::sort(order.begin(), order.end(), [&](int a, int b) { return place(a) < place(b); });
  std::string picture;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const bool same_pair =
        i > 0 && GroupOf(*board_, 2, order[i]) == GroupOf(*board_, 2, order[i - 1]);
    const bool same_quad =
        i > 0 && GroupOf(*board_, 4, order[i]) == GroupOf(*board_, 4, order[i - 1]);
    absl::StrAppend(&picture, i == 0 ? "[" : same_pair ? " " : same_quad ? "] [" : "] | [");
    const std::optional<char> holder = HolderOf(order[i]);
    absl::StrAppend(&picture, order[i], std::string(1, holder.value_or('.')));
  }
  return picture + "]";
}

std::set<int> CountOnly(const Board& board, const std::set<int>& free, int size) {
  std::vector<BoardDevice> devices = board.devices;
  std::sort(devices.begin(), devices.end(),
            [](const BoardDevice& a, const BoardDevice& b) { return a.address < b.address; });
  std::set<int> chosen;
  for (const BoardDevice& device : devices) {
    if (static_cast<int>(chosen.size()) < size && free.contains(device.module)) {
      chosen.insert(device.module);
    }
  }
  return static_cast<int>(chosen.size()) == size ? chosen : std::set<int>{};
}

std::pair<int, int> NoPair(const Board& board) {
  const Placement empty(board);
  for (const BoardDevice& a : board.devices) {
    for (const BoardDevice& b : board.devices) {
      if (a.module < b.module && !empty.PartitionOf({a.module, b.module})) {
        return {a.module, b.module};
      }
    }
  }
  return {board.devices[0].module, board.devices[1].module};
}

}  // namespace switchyard::sim
