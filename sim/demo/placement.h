// SPDX-License-Identifier: Apache-2.0
#pragma once

// Who holds which modules of a board, whether a placement is right, and a picture of it. The judge
// knows nothing of the product: it looks at the board's table only. Plain values; any thread.

#include <map>
#include <optional>
#include <set>
#include <string>

#include "sim/board/board.h"

namespace switchyard::sim {

class Placement {
 public:
  explicit Placement(const Board& board) : board_(&board) {}

  void Add(char pod, const std::set<int>& modules) { pods_[pod] = modules; }
  void Remove(char pod) { pods_.erase(pod); }

  [[nodiscard]] std::set<int> Free() const;
  [[nodiscard]] std::set<int> ModulesOf(char pod) const;
  // The pod that holds the module.
  [[nodiscard]] std::optional<char> HolderOf(int module) const;
  // A partition of that size with no member held, lowest id.
  [[nodiscard]] std::optional<int> FreePartition(int size) const;
  // The partition that is exactly this set.
  [[nodiscard]] std::optional<int> PartitionOf(const std::set<int>& modules) const;

  // "modules 1,3 = partition 3", "modules 1,2 = no partition", "not placed".
  [[nodiscard]] std::string Describe(const std::set<int>& modules) const;

  // "[1a 3a] [2. 4.] | [5b 7.] [6. 8.]": members of a pair side by side, pairs of a quad too.
  [[nodiscard]] std::string Picture() const;

 private:
  const Board* board_;
  std::map<char, std::set<int>> pods_;
};

// What an allocator that only counts does: the first free GPUs in the order of their addresses.
// Empty if there are not enough.
[[nodiscard]] std::set<int> CountOnly(const Board& board, const std::set<int>& free, int size);

// Two modules that are no partition of two.
[[nodiscard]] std::pair<int, int> NoPair(const Board& board);

}  // namespace switchyard::sim
