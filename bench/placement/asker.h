// SPDX-License-Identifier: Apache-2.0
#pragma once

// Asks the product's planner what it asks itself in enforce: available = what nobody holds, busy =
// what the ledger holds, active = what Fabric Manager routes, every GPU healthy and of known NUMA
// node, joining tenants refused. Answers are positions in the table. One thread; the yard outlives
// it.

#include <optional>
#include <vector>

#include "bench/placement/yard.h"
#include "fabric/planner.h"

namespace switchyard::bench {

class Asker {
 public:
  explicit Asker(const Yard& yard);
  Asker(const Asker&) = delete;  // request_ points into it
  Asker& operator=(const Asker&) = delete;

  // `active`: the held ones, and those not yet deactivated.
  [[nodiscard]] std::optional<int> Choose(fabric::Policy policy, Held held, Held active, int size);
  // All candidates.
  [[nodiscard]] std::vector<int> Candidates(Held held, Held active, int size);

 private:
  void Fill(Held held, Held active, int size);
  [[nodiscard]] int PositionOf(const fabric::Candidate& candidate) const {
    return static_cast<int>(candidate.partition - table_.partitions.data());
  }

  const Yard& yard_;
  fabric::PartitionTable table_;
  Held active_ = 0;  // as table_ says
  fabric::PlanRequest request_;
};

}  // namespace switchyard::bench
