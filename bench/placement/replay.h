// SPDX-License-Identifier: Apache-2.0
#pragma once

// Pods come and go on a board, and each allocator places the very same ones. A run begins with an
// empty board and counts once it is warm; runs are independent, so that their spread gives the
// standard error. The same seed gives the same pods and the same answers. Pure; any thread.

#include <cstdint>
#include <span>
#include <vector>

#include "bench/placement/demand.h"
#include "bench/placement/yard.h"

namespace switchyard::bench {

enum class Allocator {
  kPack,
  kLowestId,
  kRandom,         // any candidate of the planner
  kCountOnly,      // the first free GPUs by address; a set that is no partition is refused
  kCountOnlyKeep,  // the same, but such a pod runs all the same, without a fabric: holds its GPUs,
                   // and does not count as accepted
};
[[nodiscard]] absl::string_view AllocatorName(Allocator allocator);

struct ReplayOptions {
  std::uint64_t seed = 1;
  Measure measure = Measure::kPods;
  std::int64_t pods_per_run = 0;  // counted ones
  // How long a partition stays active after its pod, in mean holding times: the grace time. A
  // grant that overlaps it ends it.
  double linger = 0;
};

struct Rate {
  double mean = 0;
  double error = 0;  // standard error
};
[[nodiscard]] Rate RateOf(const std::vector<double>& runs);

// Acceptance of each run; run r is on yards[r], which differ in their addresses.
[[nodiscard]] std::vector<double> Replay(std::span<const Yard> yards, const Demand& demand,
                                         Allocator allocator, const ReplayOptions& options);

}  // namespace switchyard::bench
