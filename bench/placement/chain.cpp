// SPDX-License-Identifier: Apache-2.0
#include "bench/placement/chain.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"

namespace switchyard::bench {
namespace {

// The gap shrinks by the chance of an event a sweep: some hundreds of sweeps on 16 GPUs.
constexpr int kMaxSweeps = 1000000;

}  // namespace

Chain::Chain(const States& states, const std::vector<int>& sizes, const Options& options)
    : sizes_(sizes), count_(states.held.size()) {
  for (const Held held : states.held) {
    for (Held left = held; left != 0; left &= left - 1) {
      after_departure_.items.push_back(states.class_of.at(held & ~(left & -left)));
    }
    after_departure_.Close();
    most_held_ = std::max(most_held_, static_cast<size_t>(std::popcount(held)));
    for (const int size : sizes) {
      for (const int partition : options(held, size)) {
        after_arrival_.items.push_back(states.class_of.at(held | Yard::Bit(partition)));
      }
      after_arrival_.Close();
    }
  }
}

Result<Chain::Acceptance> Chain::Solve(const Demand& demand, Measure measure, Rule rule,
                                       double tolerance) const {
  std::vector<double> rate(sizes_.size(), 0);
  std::vector<double> weight(sizes_.size(), 0);
  double asked = 0;  // weight that comes per mean holding time
  for (const Share& s : demand.mix) {
    const auto found = std::find(sizes_.begin(), sizes_.end(), s.size);
    if (found == sizes_.end()) {
      return absl::InvalidArgumentError(absl::StrCat("no size ", s.size, " in this chain"));
    }
    const auto k = static_cast<size_t>(found - sizes_.begin());
    rate[k] = demand.arrivals * s.share;
    weight[k] = WeightOf(measure, s.size);
    asked += rate[k] * weight[k];
  }
  // Uniformised: an event every 1 / `events`; where fewer pods are held, some change nothing.
  const double events = demand.arrivals + static_cast<double>(most_held_);

  std::vector<double> value(count_, 0);
  std::vector<double> next(count_, 0);
  for (int sweep = 1; sweep <= kMaxSweeps; ++sweep) {
    double low = std::numeric_limits<double>::infinity();
    double high = -low;
    for (size_t s = 0; s < count_; ++s) {
      double gain = 0;  // expected, times `events`
      for (std::uint32_t i = after_departure_.begin[s]; i < after_departure_.begin[s + 1]; ++i) {
        gain += value[after_departure_.items[i]] - value[s];
      }
      for (size_t k = 0; k < sizes_.size(); ++k) {
        const size_t row = s * sizes_.size() + k;
        const std::uint32_t begin = after_arrival_.begin[row];
        const std::uint32_t end = after_arrival_.begin[row + 1];
        if (begin == end) continue;
        double best = -std::numeric_limits<double>::infinity();
        double sum = 0;
        for (std::uint32_t i = begin; i < end; ++i) {
          const double after = value[after_arrival_.items[i]];
          best = std::max(best, after);
          sum += after;
        }
        gain +=
            rate[k] * (weight[k] - value[s] + (rule == Rule::kAny ? sum / (end - begin) : best));
      }
      next[s] = value[s] + gain / events;
      low = std::min(low, gain);
      high = std::max(high, gain);
    }
    // Gains are weight accepted per mean holding time.
    if (high - low <= tolerance * asked) {
      return Acceptance{low / asked, high / asked, sweep};
    }
    const double base = next[0];
    for (double& v : next) v -= base;
    value.swap(next);
  }
  return absl::DeadlineExceededError(
      absl::StrCat("no acceptance to within ", tolerance, " in ", kMaxSweeps, " sweeps"));
}

}  // namespace switchyard::bench
