// SPDX-License-Identifier: Apache-2.0
#include "fabric/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace switchyard::fabric {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

PartitionTable Table(std::vector<Partition> partitions) {
  PartitionTable table;
  table.partitions = std::move(partitions);
  for (const Partition& p : table.partitions) table.modules = table.modules | p.modules;
  return table;
}

Partition Idle(int id, ModuleSet modules) { return {id, false, modules, true}; }
Partition Active(int id, ModuleSet modules) { return {id, true, modules, true}; }
Partition Incomplete(int id, ModuleSet modules) { return {id, false, modules, false}; }

// Everything free, healthy and on node 0.
PlanRequest Ask(const PartitionTable& table, int size) {
  PlanRequest request;
  request.table = &table;
  request.size = size;
  request.available = table.modules;
  request.usable = table.modules;
  request.numa_node.fill(0);
  return request;
}

PlanRequest Take(PlanRequest request, ModuleSet busy) {
  request.busy = busy;
  request.available = request.available - busy;
  return request;
}

std::vector<int> Ids(const PlanRequest& request) {
  std::vector<int> ids;
  for (const Candidate& candidate : Rank(request)) ids.push_back(candidate.partition->id);
  return ids;
}

TEST(Planner, SizesThatNobodyHasGetNothing) {
  const PartitionTable table = Table({Idle(0, {1, 2}), Idle(1, {1}), Idle(2, {2})});
  for (int size : {-2147483647 - 1, -1, 0, 3, 17, 2147483647}) {
    EXPECT_THAT(Ids(Ask(table, size)), IsEmpty()) << size;
    EXPECT_FALSE(Choose(Ask(table, size)).has_value()) << size;
  }
  EXPECT_FALSE(Choose(Ask(Table({}), 1)).has_value());
}

TEST(Planner, ActiveThenFreeThenStaleThenJoining) {
  // 12 joins the tenant of module 9 (in active 20); 11 overlaps stale 21; 10 is free; 13 is active.
  const PartitionTable table = Table({Idle(12, {8}), Idle(11, {6}), Idle(10, {1}), Active(13, {2}),
                                      Active(20, {8, 9}), Active(21, {6, 7})});
  const PlanRequest request = Take(Ask(table, 1), {9});
  const std::vector<Candidate> ranked = Rank(request);
  ASSERT_EQ(ranked.size(), 4u);
  EXPECT_EQ(Ids(request), (std::vector<int>{13, 10, 11, 12}));
  EXPECT_EQ(ranked[0].tier, FabricTier::kActive);
  EXPECT_EQ(ranked[1].tier, FabricTier::kFree);
  EXPECT_EQ(ranked[2].tier, FabricTier::kOverlapsStale);
  EXPECT_EQ(ranked[3].tier, FabricTier::kJoinsBusy);
}

TEST(Planner, RefuseJoiningHoldsUnderBothPoliciesActiveOrNot) {
  // Fabric Manager never has two active partitions over one module, but the input may.
  const PartitionTable table =
      Table({Active(1, {1}), Idle(2, {2}), Active(3, {1, 2, 3}), Idle(4, {4})});
  for (Policy policy : {Policy::kPack, Policy::kLowestId}) {
    PlanRequest request = Take(Ask(table, 1), {3});
    request.policy = policy;
    EXPECT_EQ(Ids(request).front(), 1) << PolicyName(policy);
    request.refuse_joining = true;
    EXPECT_THAT(Ids(request), ElementsAre(4)) << PolicyName(policy);
  }
}

TEST(Planner, OnePartitionOfItsOwnIsNoJoining) {
  const PartitionTable table = Table({Active(1, {1, 2})});
  PlanRequest request = Ask(table, 2);
  request.refuse_joining = true;
  EXPECT_THAT(Ids(request), ElementsAre(1));
}

TEST(Planner, WhatIsOnOfferIsNotBusy) {
  // A stale view may still list a module as held; kubelet has just said that it is available.
  const PartitionTable table = Table({Idle(1, {1}), Active(2, {1, 2})});
  PlanRequest request = Ask(table, 1);
  request.busy = {1, 2};
  EXPECT_EQ(Choose(request)->tier, FabricTier::kOverlapsStale);
}

TEST(Planner, AnActivePartitionWithAnUnknownGpuIsNotTakenForStale) {
  PartitionTable table = Table({Idle(1, {1}), Incomplete(2, {1, 2})});
  EXPECT_EQ(Choose(Ask(table, 1))->tier, FabricTier::kFree);
  table.partitions[1].active = true;
  PlanRequest request = Ask(table, 1);
  EXPECT_EQ(Choose(request)->tier, FabricTier::kJoinsBusy);
  request.refuse_joining = true;
  EXPECT_FALSE(Choose(request).has_value());
}

TEST(Planner, AnIncompletePartitionIsNeverChosenNorBroken) {
  const PartitionTable table =
      Table({Incomplete(1, {1, 2}), Incomplete(2, {1, 2, 3}), Idle(3, {1, 2})});
  const auto choice = Choose(Ask(table, 2));
  ASSERT_TRUE(choice.has_value());
  EXPECT_EQ(choice->partition->id, 3);
  EXPECT_EQ(choice->broken_larger, 0);
}

TEST(Planner, BreaksTheFewestLargerPartitionsThatAreStillPossible) {
  const std::vector<Partition> partitions = {Idle(1, {1}),    Idle(2, {2}),
                                             Idle(3, {3}),    Idle(4, {1, 2}),
                                             Idle(5, {3, 4}), Idle(6, {1, 2, 3, 4})};
  const PartitionTable table = Table(partitions);
  // All free: each single breaks two.
  EXPECT_EQ(Choose(Ask(table, 1))->partition->id, 1);
  EXPECT_EQ(Choose(Ask(table, 1))->broken_larger, 2);
  // 4 in use: 5 and 6 are gone already, so 3 costs nothing.
  EXPECT_EQ(Choose(Take(Ask(table, 1), {4}))->partition->id, 3);
  EXPECT_EQ(Choose(Take(Ask(table, 1), {4}))->broken_larger, 0);
  // 4 not healthy: the same.
  PlanRequest sick = Ask(table, 1);
  sick.usable.Erase(4);
  EXPECT_EQ(Choose(sick)->partition->id, 3);
  // 4 merely not on offer (kubelet may offer one NUMA node only): nothing is lost yet.
  PlanRequest one_node = Ask(table, 1);
  one_node.available.Erase(4);
  EXPECT_EQ(Choose(one_node)->partition->id, 1);
}

TEST(Planner, EqualSizesAreNotBroken) {
  const PartitionTable table = Table({Idle(1, {1, 2}), Idle(2, {2, 3}), Idle(3, {1, 2})});
  EXPECT_EQ(Choose(Ask(table, 2))->broken_larger, 0);
}

TEST(Planner, FewestNumaNodesAndUnknownCountsAsItsOwn) {
  const PartitionTable table = Table({Idle(1, {1, 2}), Idle(2, {3, 4}), Idle(3, {5, 6})});
  PlanRequest request = Ask(table, 2);
  request.numa_node[1] = 0, request.numa_node[2] = 1;
  request.numa_node[3] = -1, request.numa_node[4] = -1;
  request.numa_node[5] = 700, request.numa_node[6] = 700;
  EXPECT_EQ(Ids(request), (std::vector<int>{3, 1, 2}));
  EXPECT_EQ(Rank(request)[1].numa_nodes, 2);
  EXPECT_EQ(Rank(request)[2].numa_nodes, 2);
}

TEST(Planner, LowestIdLooksAtNothingButActive) {
  const PartitionTable table = Table({Idle(1, {1}), Idle(2, {3}), Active(5, {2}), Idle(6, {1, 4})});
  PlanRequest request = Ask(table, 1);
  request.policy = Policy::kLowestId;
  EXPECT_EQ(Ids(request), (std::vector<int>{5, 1, 2}));
  request.policy = Policy::kPack;
  EXPECT_EQ(Ids(request), (std::vector<int>{5, 2, 1}));
}

TEST(Planner, GpusOfOneGroupAreOneDeviceAndAreNotSplit) {
  const PartitionTable table =
      Table({Idle(1, {1}), Idle(2, {3}), Idle(3, {1, 2}), Idle(4, {3, 4}), Idle(5, {1, 2, 3, 4})});
  PlanRequest one = Ask(table, 1);
  one.shared_groups = {{1, 2}};
  EXPECT_EQ(Ids(one), (std::vector<int>{3, 2}));  // breaks 1 larger (5); 2 (4 and 5)
  PlanRequest three = Ask(table, 3);
  three.shared_groups = {{1, 2}};
  EXPECT_THAT(Ids(three), ElementsAre(5));
  EXPECT_THAT(WhyNone([&] {
                PlanRequest four = three;
                four.size = 4;
                return four;
              }()),
              HasSubstr("no partition has 4 devices; sizes are 1, 2, 3"));
}

TEST(Why, NamesTheTenantThatWouldBeJoined) {
  const PartitionTable table = Table({Active(5, {5, 7}), Idle(11, {5}), Idle(12, {6})});
  PlanRequest request = Take(Ask(table, 1), {7});
  request.numa_node[6] = -1;
  const std::vector<Candidate> ranked = Rank(request);
  ASSERT_EQ(ranked.size(), 2u);
  EXPECT_EQ(Why(request, ranked[0]),
            "free; breaks no larger partition; 1 NUMA node (1 GPU of unknown node)");
  EXPECT_EQ(Why(request, ranked[1]),
            "would join the tenant of active partition 5 (module 7 is in use); breaks no larger "
            "partition; 1 NUMA node");
}

TEST(Why, NamesStaleAndBrokenPartitions) {
  const PartitionTable table =
      Table({Idle(0, {1, 2, 3, 4}), Idle(1, {1, 2}), Active(2, {3, 4}), Active(3, {2})});
  const PlanRequest request = Ask(table, 2);
  const std::vector<Candidate> ranked = Rank(request);
  ASSERT_EQ(ranked.size(), 2u);
  EXPECT_EQ(Why(request, ranked[0]), "active; breaks 1 larger partition (0); 1 NUMA node");
  EXPECT_EQ(Why(request, ranked[1]),
            "overlaps stale active partition 3 (all its GPUs are free); breaks 1 larger partition "
            "(0); 1 NUMA node");
}

TEST(WhyNone, NamesTheFirstRuleThatLeavesNothing) {
  PartitionTable table = Table(
      {Idle(0, {1, 2, 3, 4}), Idle(1, {1, 2}), Idle(2, {3, 4}), Idle(3, {1}), Active(4, {3, 5})});
  EXPECT_EQ(WhyNone(Ask(table, 3)), "no partition has 3 GPUs; sizes are 1, 2, 4");
  EXPECT_EQ(WhyNone(Ask(table, 0)), "the size is 0; ask for at least 1");
  EXPECT_EQ(WhyNone(Ask(Table({}), 1)), "the partition table is empty");

  PlanRequest include = Ask(table, 2);
  include.must_include = {2, 3};
  EXPECT_EQ(WhyNone(include), "no partition has 2 GPUs and contains modules 2,3");
  include.available.Erase(3);
  EXPECT_EQ(WhyNone(include), "module 3 must be included but is not available");

  EXPECT_EQ(WhyNone(Take(Ask(table, 4), {1, 2})),
            "no partition has 4 GPUs and is free as a whole; available: modules 3,4,5");
  EXPECT_EQ(WhyNone(Take(Ask(table, 1), table.modules)),
            "no partition has 1 GPU and is free as a whole; nothing is available");

  PlanRequest enforce = Take(Ask(table, 2), {1, 5});
  enforce.refuse_joining = true;
  EXPECT_EQ(WhyNone(enforce),
            "partition 2 would join the tenant of active partition 4 (module 5 is in use)");

  table.partitions[0].complete = false;
  EXPECT_EQ(WhyNone(Ask(table, 4)),
            "no partition has 4 GPUs; sizes are 1, 2; not counting 1 partition with a GPU that has "
            "no module id: complete the module map");
}

}  // namespace
}  // namespace switchyard::fabric
