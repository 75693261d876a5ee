// SPDX-License-Identifier: Apache-2.0
#pragma once

// Every state of a board (which disjoint partitions are held), and which of them are one state in
// another place. A symmetry is a permutation of the modules that maps partitions onto partitions;
// two states that one turns into the other have the same future under the best placement, so one
// of each class is enough to find it. Pure; any thread.

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "bench/placement/yard.h"

namespace switchyard::bench {

struct States {
  std::vector<Held> held;  // one state of each class, the empty board first
  absl::flat_hash_map<Held, std::uint32_t> class_of;  // of every state
};

// Every state a class of its own. kResourceExhausted beyond `limit` states.
[[nodiscard]] Result<States> EveryState(const Yard& yard, size_t limit);
// The same with symmetric states in one class.
[[nodiscard]] Result<States> EveryStateBySymmetry(const Yard& yard, size_t limit);

// As permutations of table positions: enough symmetries to make all others of (fewer, and so more
// classes, on a board whose search would take too long).
[[nodiscard]] std::vector<std::vector<int>> Symmetries(const Yard& yard);

}  // namespace switchyard::bench
