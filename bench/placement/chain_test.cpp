// SPDX-License-Identifier: Apache-2.0
// Value iteration against boards whose acceptance is known: from a formula, or by solving the
// balance equations of every placement policy there is.
#include "bench/placement/chain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "bench/placement/testing/known.h"

namespace switchyard::bench {
namespace {

constexpr double kClose = 1e-9;

Options Anything(const Yard& yard) {
  return [&yard](Held held, int size) { return yard.FreePartitions(held, size); };
}

double Optimum(const Yard& yard, const Demand& demand, Measure measure = Measure::kPods) {
  const States states = EveryState(yard, 100000).value();
  std::vector<int> sizes;
  for (const Share& s : demand.mix) sizes.push_back(s.size);
  const auto found =
      Chain(states, sizes, Anything(yard)).Solve(demand, measure, Chain::Rule::kBest, kClose / 10);
  EXPECT_TRUE(found.ok()) << found.status();
  EXPECT_LE(found->low, found->high);
  return found->value();
}

TEST(Chain, OneGpuIsErlangsFormula) {
  const Yard yard = MakeYard({{1}});
  for (const double load : {0.01, 0.5, 1.0, 4.0}) {
    EXPECT_NEAR(Optimum(yard, {{{1, 1.0}}, load}), 1 / (1 + load), kClose);
  }
}

TEST(Chain, SingleGpusAreErlangsFormula) {
  const Yard yard = MakeYard({{1}, {2}, {3}, {4}, {5}});
  for (const double load : {0.5, 3.0, 7.0}) {
    EXPECT_NEAR(Optimum(yard, {{{1, 1.0}}, load}), 1 - ErlangB(5, load), kClose);
  }
}

// Two singles or their pair: nothing to choose, so the shares of time are in product form.
TEST(Chain, APairOrTwoSinglesByHand) {
  const Yard yard = MakeYard({{1, 2}, {1}, {2}});
  const double single = 0.8;
  const double pair = 0.3;
  const double idle = 1 / (1 + single + single * single / 2 + pair);
  const double one_held = idle * single;
  const Demand demand{{{1, single / 1.1}, {2, pair / 1.1}}, 1.1};
  EXPECT_NEAR(Optimum(yard, demand), (single * (idle + one_held) + pair * idle) / (single + pair),
              kClose);
  EXPECT_NEAR(Optimum(yard, demand, Measure::kGpus),
              (single * (idle + one_held) + 2 * pair * idle) / (single + 2 * pair), kClose);
}

// Where there are choices: the best of all policies, each solved by its balance equations. The
// good choice (3, which leaves the pair whole) is neither the first nor the last in the table.
TEST(Chain, FindsTheBestOfAllPolicies) {
  const Yard yard = MakeYard({{1, 2}, {1}, {3}, {2}});
  for (const Measure measure : {Measure::kPods, Measure::kGpus}) {
    for (const double pairs : {0.05, 0.3, 0.7}) {
      const Demand demand{{{1, 1 - pairs}, {2, pairs}}, 1.7};
      const std::vector<double> all = EveryPolicy(yard, demand, measure);
      ASSERT_GT(all.size(), 2u);
      const auto [worst, best] = std::minmax_element(all.begin(), all.end());
      EXPECT_NEAR(Optimum(yard, demand, measure), *best, kClose);
      EXPECT_GT(*best - *worst, 1e-3) << "the choice must matter";
    }
  }
}

TEST(Chain, RandomPlacementIsNoBetterThanTheBest) {
  const Yard yard = MakeYard({{1, 2}, {1}, {3}, {2}});
  const Demand demand{{{1, 0.7}, {2, 0.3}}, 1.7};
  const Chain chain(EveryState(yard, 1000).value(), {1, 2}, Anything(yard));
  const double any = chain.Solve(demand, Measure::kPods, Chain::Rule::kAny, kClose / 10)->value();
  const std::vector<double> all = EveryPolicy(yard, demand, Measure::kPods);
  EXPECT_LT(any, *std::max_element(all.begin(), all.end()) - 1e-4);
  EXPECT_GT(any, *std::min_element(all.begin(), all.end()) + 1e-4);
}

TEST(Chain, SymmetricStatesHaveOneOptimum) {
  const Yard yard = LoadYard("hgx-h100", 1).value();
  const Demand demand{{{1, 0.5}, {2, 0.25}, {4, 0.15}, {8, 0.1}}, 3};
  const Chain whole(EveryState(yard, 1000).value(), {1, 2, 4, 8}, Anything(yard));
  const Chain classes(EveryStateBySymmetry(yard, 1000).value(), {1, 2, 4, 8}, Anything(yard));
  for (const Measure measure : {Measure::kPods, Measure::kGpus}) {
    EXPECT_NEAR(whole.Solve(demand, measure, Chain::Rule::kBest, 1e-8)->value(),
                classes.Solve(demand, measure, Chain::Rule::kBest, 1e-8)->value(), 1e-7);
  }
}

TEST(Chain, ASizeItWasNotBuiltForIsRefused) {
  const Yard yard = MakeYard({{1}, {2}});
  const Chain chain(EveryState(yard, 100).value(), {1}, Anything(yard));
  EXPECT_EQ(chain.Solve({{{2, 1.0}}, 1}, Measure::kPods, Chain::Rule::kBest, 1e-6).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace switchyard::bench
