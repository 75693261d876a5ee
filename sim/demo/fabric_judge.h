// SPDX-License-Identifier: Apache-2.0
#pragma once

// What Fabric Manager's list must say in enforce, by what the demo has done: each who has GPUs has
// one active partition, and nothing else is active. It knows nothing of the product. Plain values;
// any thread.

#include <map>
#include <optional>
#include <set>
#include <string>

#include "sim/board/board.h"

namespace switchyard::sim {

class FabricJudge {
 public:
  explicit FabricJudge(const Board& board) : board_(&board) {}

  // Must be active from now on. What overlaps it must not be, unless it is somebody's.
  void Has(char who, int partition);
  // Nobody's any more. It may be active until something wants its GPUs, or until Settled.
  void Left(char who);
  // Active or not: nobody was told that he has it.
  void MayBeActive(int partition) { may_.insert(partition); }
  // What may be active must not be any longer.
  void Settled() { may_.clear(); }
  // Fabric Manager has lost all of it, and nobody may activate it again under a running guest.
  void Lost();

  [[nodiscard]] std::optional<int> PartitionOf(char who) const;
  [[nodiscard]] std::set<int> must() const;
  // Empty if that list of active partitions is right.
  [[nodiscard]] std::string Problem(const std::set<int>& active) const;

 private:
  [[nodiscard]] bool Overlap(int a, int b) const;

  const Board* board_;
  std::map<char, int> must_;
  std::set<int> may_;
};

}  // namespace switchyard::sim
