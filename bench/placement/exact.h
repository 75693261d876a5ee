// SPDX-License-Identifier: Apache-2.0
#pragma once

// What is known of a board exactly: the optimum, and the acceptance of the planner's policies and
// of a random partition where the board has few enough states. Built once a board, asked once a
// demand. Pure; any thread.

#include <optional>
#include <string>
#include <vector>

#include "bench/placement/chain.h"
#include "bench/placement/replay.h"

namespace switchyard::bench {

inline constexpr double kTolerance = 1e-7;  // of an acceptance

class Exact {
 public:
  // With every state of its own: the policies' choices are not symmetric.
  static constexpr size_t kMostStates = 20000;
  // With one state of each class, for the optimum.
  static constexpr size_t kMostStatesBySymmetry = 2000000;

  Exact(const Yard& yard, const std::vector<int>& sizes);

  // "677 states, 67 up to symmetry", or why there is no optimum.
  [[nodiscard]] const std::string& words() const { return words_; }

  // Of placing what fits as well as can be. Nothing where the board has too many states.
  [[nodiscard]] Result<std::optional<double>> Optimum(const Demand& demand, Measure measure) const;
  // Nothing for allocators that count, and for boards of too many states.
  [[nodiscard]] Result<std::optional<double>> Of(Allocator allocator, const Demand& demand,
                                                 Measure measure) const;

 private:
  std::string words_;
  std::optional<Chain> best_;
  std::optional<Chain> pack_;
  std::optional<Chain> lowest_id_;
  std::optional<Chain> random_;
};

}  // namespace switchyard::bench
