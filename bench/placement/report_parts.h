// SPDX-License-Identifier: Apache-2.0
#pragma once

// What both tables of report.h need. Plain values; any thread.

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/placement/replay.h"

namespace switchyard::bench {

// Those that place partitions, and so can be set beside the optimum.
inline constexpr std::array kCompared = {Allocator::kPack, Allocator::kLowestId,
                                         Allocator::kRandom};

inline Status CheckSizes(const Yard& yard, const std::vector<int>& sizes) {
  for (const int size : sizes) {
    if (yard.HasSize(size)) continue;
    return absl::InvalidArgumentError(absl::StrCat("board ", yard.name, " has no partition of ",
                                                   size, " GPUs; leave that size out of --mix"));
  }
  return OkStatus();
}

// The lowest so far, and where.
struct Lowest {
  static constexpr double kNone = 2;
  double ratio = kNone;
  std::string where = "-";
  void Take(double value, std::string here) {
    if (value >= ratio) return;
    ratio = value;
    where = std::move(here);
  }
};

}  // namespace switchyard::bench
