// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests: boards from a list of partitions, and acceptance by other ways than the chain's, which
// share no code with it. Small boards only.

#include <vector>

#include "bench/placement/demand.h"
#include "bench/placement/yard.h"

namespace switchyard::bench {

// Ids ascend from 0; module 1 has the lowest address; all on NUMA node 0.
[[nodiscard]] Yard MakeYard(const std::vector<fabric::ModuleSet>& partitions);

// The part of pods that n servers lose at that load.
[[nodiscard]] double ErlangB(int servers, double load);

// The acceptance of every deterministic policy that never refuses what fits: the balance equations
// of each, by elimination.
[[nodiscard]] std::vector<double> EveryPolicy(const Yard& yard, const Demand& demand,
                                              Measure measure);

}  // namespace switchyard::bench
