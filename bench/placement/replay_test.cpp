// SPDX-License-Identifier: Apache-2.0
// The replay against what is known of its acceptance. Seeds are fixed: what passes once passes
// always.
#include "bench/placement/replay.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "bench/placement/exact.h"
#include "bench/placement/testing/known.h"

namespace switchyard::bench {
namespace {

constexpr std::array kAll = {Allocator::kPack, Allocator::kLowestId, Allocator::kRandom,
                             Allocator::kCountOnly, Allocator::kCountOnlyKeep};

Rate AcceptedBy(const Yard& yard, const Demand& demand, Allocator allocator,
                ReplayOptions options) {
  return RateOf(Replay(std::vector<Yard>(20, yard), demand, allocator, options));
}

TEST(Replay, AnEmptyBoardAcceptsEverything) {
  const Yard yard = MakeYard({{1, 2}, {1}, {2}});
  for (const Allocator allocator : kAll) {
    const Rate rate =
        AcceptedBy(yard, {{{1, 0.5}, {2, 0.5}}, 1e-6}, allocator, {.seed = 1, .pods_per_run = 200});
    EXPECT_DOUBLE_EQ(rate.mean, 1) << AllocatorName(allocator);
    EXPECT_LT(rate.error, 1e-12);
  }
}

TEST(Replay, OneGpuIsErlangsFormula) {
  const Yard yard = MakeYard({{1}});
  for (const Allocator allocator : kAll) {
    const Rate rate =
        AcceptedBy(yard, {{{1, 1.0}}, 0.8}, allocator, {.seed = 1, .pods_per_run = 2000});
    EXPECT_GT(rate.error, 0);
    EXPECT_LT(rate.error, 0.01);
    EXPECT_NEAR(rate.mean, 1 / 1.8, 3.5 * rate.error) << AllocatorName(allocator);
  }
}

TEST(Replay, SingleGpusAreErlangsFormula) {
  const Yard yard = MakeYard({{1}, {2}, {3}, {4}, {5}});
  const Rate rate =
      AcceptedBy(yard, {{{1, 1.0}}, 3.0}, Allocator::kPack, {.seed = 1, .pods_per_run = 2000});
  EXPECT_LT(rate.error, 0.01);
  EXPECT_NEAR(rate.mean, 1 - ErlangB(5, 3.0), 3.5 * rate.error);
}

TEST(Replay, AgreesWithTheExactAcceptance) {
  const Yard yard = LoadYard("hgx-h100", 1).value();
  const Mix mix = ParseMix("1:50,2:25,4:15,8:10").value();
  const Demand demand = DemandOf(mix, 0.9, 8);
  const Exact exact(yard, {1, 2, 4, 8});
  for (const Measure measure : {Measure::kPods, Measure::kGpus}) {
    for (const Allocator allocator : {Allocator::kPack, Allocator::kLowestId, Allocator::kRandom}) {
      const double known = exact.Of(allocator, demand, measure).value().value();
      const Rate rate = AcceptedBy(yard, demand, allocator,
                                   {.seed = 1, .measure = measure, .pods_per_run = 1000});
      EXPECT_LT(rate.error, 0.01);
      EXPECT_NEAR(rate.mean, known, 3.5 * rate.error) << AllocatorName(allocator);
      EXPECT_LE(known, exact.Optimum(demand, measure).value().value() + 1e-6);
    }
  }
}

// Pairs are {1,3} and {2,4}; in address order the first two are none.
TEST(Replay, ACountingAllocatorMissesThePairs) {
  const Yard yard = MakeYard({{1, 3}, {2, 4}});
  const Demand rare{{{2, 1.0}}, 1e-6};
  const ReplayOptions options{.seed = 1, .pods_per_run = 50};
  EXPECT_EQ(AcceptedBy(yard, rare, Allocator::kCountOnly, options).mean, 0);
  EXPECT_EQ(AcceptedBy(yard, rare, Allocator::kCountOnlyKeep, options).mean, 0);
  EXPECT_DOUBLE_EQ(AcceptedBy(yard, rare, Allocator::kPack, options).mean, 1);
}

// Kept, such a pod stands in the way of others; refused, it does not.
TEST(Replay, APodThatIsKeptHoldsItsGpus) {
  const Yard yard = MakeYard({{1, 3}, {1}, {2}, {3}});
  const Demand demand{{{1, 0.5}, {2, 0.5}}, 2};
  const ReplayOptions options{.seed = 1, .pods_per_run = 500};
  EXPECT_GT(AcceptedBy(yard, demand, Allocator::kCountOnly, options).mean,
            AcceptedBy(yard, demand, Allocator::kCountOnlyKeep, options).mean + 0.05);
}

// An active partition that nobody holds is taken first, so lingering ones change what pack does.
TEST(Replay, WhatLingersIsActive) {
  const Yard yard = LoadYard("hgx-h100", 1).value();
  const Demand demand = DemandOf(ParseMix("1:50,2:25,4:15,8:10").value(), 0.9, 8);
  const ReplayOptions without{.seed = 1, .pods_per_run = 500};
  ReplayOptions with = without;
  with.linger = 10;
  EXPECT_NE(AcceptedBy(yard, demand, Allocator::kPack, without).mean,
            AcceptedBy(yard, demand, Allocator::kPack, with).mean);
  // Nothing is refused because of it: one GPU is accepted as before.
  const Yard one = MakeYard({{1}});
  EXPECT_EQ(AcceptedBy(one, {{{1, 1.0}}, 0.8}, Allocator::kPack, without).mean,
            AcceptedBy(one, {{{1, 1.0}}, 0.8}, Allocator::kPack, with).mean);
}

TEST(Replay, TheSameSeedGivesTheSameAndAnotherDoesNot) {
  const Yard yard = LoadYard("hgx-b200", 1).value();
  const Demand demand = DemandOf(ParseMix("1:1,2:1").value(), 1, 8);
  for (const Allocator allocator : kAll) {
    const std::vector<Yard> yards(3, yard);
    const auto first = Replay(yards, demand, allocator, {.seed = 5, .pods_per_run = 300});
    EXPECT_EQ(first, Replay(yards, demand, allocator, {.seed = 5, .pods_per_run = 300}));
    EXPECT_NE(first, Replay(yards, demand, allocator, {.seed = 6, .pods_per_run = 300}));
  }
}

TEST(RateOf, IsTheMeanAndItsStandardError) {
  const Rate rate = RateOf({0.5, 0.7, 0.9});
  EXPECT_NEAR(rate.mean, 0.7, 1e-12);
  EXPECT_NEAR(rate.error, 0.2 / std::sqrt(3.0), 1e-12);
}

}  // namespace
}  // namespace switchyard::bench
