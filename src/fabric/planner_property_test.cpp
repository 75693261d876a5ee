// SPDX-License-Identifier: Apache-2.0
// The planner against its oracle on random boards. RC_PARAMS="seed=..." repeats a failure.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>
#include <cstdlib>
#include <tuple>

#include "fabric/planner.h"
#include "fabric/planner_oracle.h"

namespace switchyard::fabric {
namespace {

constexpr int kRuns = 3000;

// The full range whatever the size that rapidcheck is at.
template <typename T>
rc::Gen<T> Any(T min, T last) {
  return rc::gen::resize(rc::kNominalSize, rc::gen::inRange<T>(min, last + 1));
}

ModuleSet FromMask(unsigned mask) {
  ModuleSet set;
  for (ModuleId m = kMinModule; m <= kMaxModule; ++m) {
    if ((mask >> (m - 1) & 1u) != 0) set.Insert(m);
  }
  return set;
}

// About a half, a quarter or an eighth of the modules, so that small partitions are common.
unsigned Mask(int density) {
  unsigned mask = 0xffff;
  for (int i = 0; i <= density; ++i) mask &= *Any(0u, 0xffffu);
  return mask;
}

PartitionTable AnyTable(unsigned board) {
  PartitionTable table;
  const auto count = *rc::gen::inRange<size_t>(1, kMaxPartitions + 1);
  const auto ids = *rc::gen::unique<std::vector<int>>(count, Any(0, 999));
  for (int id : ids) {
    unsigned mask = Mask(*Any(0, 2)) & board;
    if (mask == 0) mask = board & -board;  // its lowest module
    table.partitions.push_back({.id = id,
                                .active = *Any(0, 3) == 0,
                                .modules = FromMask(mask),
                                .complete = *Any(0, 11) != 0});
    table.modules = table.modules | FromMask(mask);
  }
  return table;
}

PlanRequest AnyRequest(const PartitionTable& table, unsigned board) {
  PlanRequest request;
  request.table = &table;
  const size_t like = *Any<size_t>(0, table.partitions.size() - 1);
  const ModuleSet model = table.partitions[like].modules;
  request.size = *Any(0, 9) == 0 ? *Any(-1, 17) : model.size();
  request.available = FromMask(board & ~Mask(*Any(1, 3)));
  if (*Any(0, 1) == 0) request.available = request.available | model;
  if (*Any(0, 3) == 0) request.must_include = FromMask(Mask(1)) & model;
  request.busy = FromMask(board & Mask(*Any(0, 3)));  // may name what is available
  request.usable = FromMask(board & ~Mask(3));
  for (ModuleId m = kMinModule; m <= kMaxModule; ++m)
    request.numa_node[static_cast<size_t>(m)] = *Any(-1, 2);
  if (*Any(0, 2) == 0) {  // neighbours in one IOMMU group
    const ModuleId first = *Any(1, 13);
    request.shared_groups.push_back({first, first + 1});
    if (*Any(0, 1) == 0) request.shared_groups.push_back({first + 2, first + 3});
    if (*Any(0, 1) == 0) --request.size;
  }
  return request;
}

// What the runs have seen, to know that they looked where it matters.
struct Seen {
  int runs = 0;
  int answers = 0;
  int choices = 0;  // more than one candidate
  std::array<int, 4> best_tier = {};
};

void CheckAgainstOracle(const PlanRequest& request, Seen& seen) {
  const std::vector<oracle::Standing> right = oracle::Answer(request);
  const std::vector<Candidate> ranked = Rank(request);
  RC_ASSERT(ranked.size() == right.size());
  for (size_t i = 0; i < right.size(); ++i) {
    RC_ASSERT(ranked[i].partition->id == right[i].id);
    RC_ASSERT(static_cast<int>(ranked[i].tier) + 1 == right[i].tier);
    RC_ASSERT(ranked[i].broken_larger == right[i].broken);
    RC_ASSERT(ranked[i].numa_nodes == right[i].nodes);
    RC_ASSERT(!Why(request, ranked[i]).empty());
  }
  const std::optional<Candidate> choice = Choose(request);
  RC_ASSERT(choice.has_value() == !right.empty());
  if (!choice) {
    RC_ASSERT(!WhyNone(request).empty());
    return;
  }
  RC_ASSERT(choice->partition->id == right.front().id);
  // What must hold of any answer, whoever ranks.
  RC_ASSERT(choice->partition == request.table->Find(choice->partition->id));
  RC_ASSERT(choice->partition->modules.ContainsAll(request.must_include));
  RC_ASSERT(request.available.ContainsAll(choice->partition->modules));
  if (request.shared_groups.empty()) RC_ASSERT(choice->partition->modules.size() == request.size);
  ++seen.answers;
  if (right.size() > 1) ++seen.choices;
  ++seen.best_tier[static_cast<size_t>(choice->tier)];
}

class PlannerProperty : public ::testing::TestWithParam<std::tuple<Policy, bool>> {};

TEST_P(PlannerProperty, AgreesWithTheOracle) {
  setenv("RC_PARAMS", ("max_success=" + std::to_string(kRuns)).c_str(), /*overwrite=*/0);
  Seen seen;
  EXPECT_TRUE(rc::check([&] {
    const unsigned board = 0xffffu >> *Any(0, 15);
    const PartitionTable table = AnyTable(board);
    PlanRequest request = AnyRequest(table, board);
    std::tie(request.policy, request.refuse_joining) = GetParam();
    ++seen.runs;
    CheckAgainstOracle(request, seen);
  }));
  if (HasFailure()) return;
  EXPECT_GT(seen.answers, seen.runs / 3);
  EXPECT_GT(seen.choices, seen.runs / 6);
  EXPECT_GT(seen.best_tier[0], seen.runs / 100);
  EXPECT_GT(seen.best_tier[1], seen.runs / 100);
  EXPECT_GT(seen.best_tier[2], seen.runs / 100);
  if (!std::get<1>(GetParam())) {
    EXPECT_GT(seen.best_tier[3], seen.runs / 100);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Both, PlannerProperty,
    ::testing::Combine(::testing::Values(Policy::kPack, Policy::kLowestId), ::testing::Bool()),
    [](const auto& test) {
      return std::string(std::get<0>(test.param) == Policy::kPack ? "Pack" : "LowestId") +
             (std::get<1>(test.param) ? "RefuseJoining" : "");
    });

}  // namespace
}  // namespace switchyard::fabric
