// SPDX-License-Identifier: Apache-2.0
#pragma once

// The tables of bench/placement, as Markdown. The same options give the same text. Errors name the
// option and the rule. One thread.

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "bench/placement/demand.h"

namespace switchyard::bench {

struct PlacementOptions {
  std::vector<std::string> boards;  // names or files
  std::vector<Mix> mixes;
  std::vector<double> loads;
  std::int64_t pods = 0;  // a cell, over all its runs
  int runs = 0;
  std::uint64_t seed = 1;
  double linger = 0;  // replay.h
  Measure measure = Measure::kPods;
};

// Replays each demand on each board and sets the exact values beside it.
[[nodiscard]] Status ReportReplay(const PlacementOptions& options, std::ostream& out);

// Exact only: the lowest acceptance against the optimum, by either measure, over every mix of 1, 2,
// 4 and 8 GPUs in steps of `step` per cent. Boards of too many states are left out, with a line
// that says so.
[[nodiscard]] Status ReportEveryMix(const PlacementOptions& options, int step, std::ostream& out);

}  // namespace switchyard::bench
