// SPDX-License-Identifier: Apache-2.0
#include "bench/placement/asker.h"

namespace switchyard::bench {

Asker::Asker(const Yard& yard) : yard_(yard), table_(yard.table) {
  request_.table = &table_;
  request_.usable = table_.modules;
  request_.numa_node = yard.numa_node;
  request_.refuse_joining = true;
}

void Asker::Fill(Held held, Held active, int size) {
  for (Held changed = active ^ active_; changed != 0; changed &= changed - 1) {
    fabric::Partition& p = table_.partitions[static_cast<size_t>(std::countr_zero(changed))];
    p.active = !p.active;
  }
  active_ = active;
  request_.size = size;
  request_.busy = yard_.ModulesOf(held);
  request_.available = table_.modules - request_.busy;
}

std::optional<int> Asker::Choose(fabric::Policy policy, Held held, Held active, int size) {
  Fill(held, active, size);
  request_.policy = policy;
  const auto candidate = fabric::Choose(request_);
  if (!candidate) return std::nullopt;
  return PositionOf(*candidate);
}

std::vector<int> Asker::Candidates(Held held, Held active, int size) {
  Fill(held, active, size);
  request_.policy = fabric::Policy::kLowestId;
  std::vector<int> positions;
  for (const fabric::Candidate& candidate : fabric::Rank(request_)) {
    positions.push_back(PositionOf(candidate));
  }
  return positions;
}

}  // namespace switchyard::bench
