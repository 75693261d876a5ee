// SPDX-License-Identifier: Apache-2.0
#pragma once

// Long-run acceptance of a way to place, exactly: the board as a Markov chain (its states and what
// a pod that comes or goes makes of them) and relative value iteration over it, which brackets the
// answer in each sweep (Odoni's bounds). Pure; any thread.

#include <cstdint>
#include <functional>
#include <vector>

#include "bench/placement/demand.h"
#include "bench/placement/states.h"

namespace switchyard::bench {

// The partitions that a pod of that size may get, as positions in the table; none = refused.
using Options = std::function<std::vector<int>(Held, int size)>;

class Chain {
 public:
  // `options` is asked once for each state and size.
  Chain(const States& states, const std::vector<int>& sizes, const Options& options);

  enum class Rule {
    kBest,  // of the options the one that pays in the long run; what fits is never refused
    kAny,   // each option as likely as the others
  };
  struct Acceptance {
    double low = 0;  // the true value lies between
    double high = 0;
    int sweeps = 0;
    [[nodiscard]] double value() const { return (low + high) / 2; }
  };
  // Until high - low <= tolerance; kDeadlineExceeded if it takes too many sweeps,
  // kInvalidArgument if the demand has a size that the chain was not built for.
  [[nodiscard]] Result<Acceptance> Solve(const Demand& demand, Measure measure, Rule rule,
                                         double tolerance) const;

 private:
  // Row r of a list of lists is items[begin[r]..begin[r+1]).
  struct Rows {
    std::vector<std::uint32_t> begin = {0};
    std::vector<std::uint32_t> items;
    void Close() { begin.push_back(static_cast<std::uint32_t>(items.size())); }
  };

  std::vector<int> sizes_;
  size_t count_;
  size_t most_held_ = 0;
  Rows after_departure_;  // row = state
  Rows after_arrival_;    // row = state * sizes + size
};

}  // namespace switchyard::bench
