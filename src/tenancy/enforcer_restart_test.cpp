// SPDX-License-Identifier: Apache-2.0
// What the Enforcer makes of restarts: the agent's, Fabric Manager's, the node's.

#include <gmock/gmock.h>

#include "fabric/fabric_answer.h"
#include "tenancy/enforcer.h"
#include "tenancy/testing/enforcer_fixture.h"

namespace switchyard::tenancy {
namespace {

using ::testing::_;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using State = TenancyState;
using StateMap = std::map<int, State>;
using testing::At;
using testing::DeviceAt;

class EnforcerRestartTest : public testing::EnforcerFixture {
 protected:
  EnforcerRestartTest() { Start(); }
};

TEST_F(EnforcerRestartTest, ARestartOfTheAgentForgetsNothing) {
  ASSERT_TRUE(Acquire({1, 3}).ok());
  Start();
  EXPECT_EQ(enforcer_->BusyModules(), (fabric::ModuleSet{1, 3}));
  Assign({1, 3}, "default/a");
  Turns(20);
  EXPECT_THAT(fabric_.Active(), ElementsAre(3));
}

TEST_F(EnforcerRestartTest, AfterACrashInAnActivationTheGraceDecides) {
  journal_.before_write = [&](const TenancyRecord& record) {
    if (record.state == State::kActive) throw std::runtime_error("crash");
  };
  EXPECT_THROW((void)Acquire({1, 3}), std::runtime_error);
  journal_.before_write = nullptr;
  Start();
  Turn();
  EXPECT_EQ(States(), (StateMap{{3, State::kActive}}));
  Turns(6);
  EXPECT_THAT(fabric_.Active(), ElementsAre(3)) << "kubelet may still be starting";
  Turn();
  EXPECT_THAT(fabric_.Active(), IsEmpty());
}

TEST_F(EnforcerRestartTest, AWarmFabricManagerIsToldAllThatWasActive) {
  restart_is_warm_ = true;
  fabric_.SetActive(12, true);  // foreign: module 6
  Start();
  ASSERT_TRUE(Acquire({1, 3}).ok());
  fabric_.SetActive(3, false);
  fabric_.SetActive(12, false);
  const fabric::FabricAnswer answer{"fmGetSupportedFabricPartitions", -8};
  fabric_.down = fabric::WithFabricAnswer(absl::UnavailableError("still initialising"), answer);
  fabric_.failures.push_back({OkStatus(), true});
  Turn();
  ASSERT_TRUE(fabric_.sent.has_value());
  EXPECT_THAT(*fabric_.sent, ElementsAre(3, 12));
  EXPECT_TRUE(enforcer_->FabricStatus().ok());
}

class EnforcerWarmTest : public EnforcerRestartTest {
 protected:
  EnforcerWarmTest() {
    restart_is_warm_ = true;
    Start();
  }
  // Fabric Manager waits, is told what was active, and goes on.
  std::set<int> SentAfterWarmRestart() {
    fabric_.down = fabric::WithFabricAnswer(absl::UnavailableError("still initialising"),
                                            {"fmGetSupportedFabricPartitions", -8});
    fabric_.failures.push_back({OkStatus(), true});
    Turn();
    EXPECT_TRUE(fabric_.sent.has_value());
    return fabric_.sent.value_or(std::set<int>{-1});
  }
};

TEST_F(EnforcerWarmTest, WhetherItIsWarmIsJudgedWhenItMatters) {
  ASSERT_TRUE(Acquire({1, 3}).ok());
  restart_is_warm_ = false;
  fabric_.down = fabric::WithFabricAnswer(absl::UnavailableError("still initialising"),
                                          {"fmGetSupportedFabricPartitions", -8});
  Turns(3);
  EXPECT_THAT(fabric_.calls, Not(Contains("set"))) << "what it does to a cold one is undefined";
  restart_is_warm_ = true;
  EXPECT_THAT(SentAfterWarmRestart(), ElementsAre(3));
}

TEST_F(EnforcerWarmTest, WhatWasOnlyAskedForIsNotSent) {
  fabric_.before_change = [] { throw std::runtime_error("crash"); };
  EXPECT_THROW((void)Acquire({1, 3}), std::runtime_error);
  fabric_.before_change = nullptr;
  Start();
  EXPECT_THAT(SentAfterWarmRestart(), IsEmpty());
  EXPECT_TRUE(Acquire({2, 4}).ok());
  Turns(20);
  EXPECT_THAT(States(), Not(Contains(Pair(3, _)))) << "it was given to nobody";
  ASSERT_TRUE(Acquire({1, 3}).ok());
  EXPECT_THAT(fabric_.calls, Contains("+3"));
}

TEST_F(EnforcerWarmTest, WhatWasLostIsNotSent) {
  ASSERT_TRUE(Acquire({1, 3}).ok());
  ASSERT_TRUE(Acquire({2, 4}).ok());
  Assign({1, 2, 3, 4}, "default/a");
  fabric_.SetActive(3, false);  // a cold restart, after which the other was activated again
  Turn();
  EXPECT_THAT(SentAfterWarmRestart(), ElementsAre(4));
}

TEST_F(EnforcerWarmTest, WhatAFormerAgentSawLostIsNotSent) {
  ASSERT_TRUE(Acquire({1, 3}).ok());
  ASSERT_TRUE(Acquire({2, 4}).ok());
  Assign({1, 2, 3, 4}, "default/a");
  Hold({1, 3, 2, 4});
  const fabric::FabricList before = fabric_.list;
  fabric_.SetActive(3, false);  // a cold restart, after which the other was activated again
  Turn();
  Start();
  enforcer_->ObserveRememberedList(before);
  EXPECT_THAT(SentAfterWarmRestart(), ElementsAre(4));
}

TEST_F(EnforcerWarmTest, WhatWasLostAndActivatedAgainIsSent) {
  ASSERT_TRUE(Acquire({1, 3}).ok());
  Assign({1, 3}, "default/a");
  fabric_.SetActive(3, false);
  Turn();
  fabric_.SetActive(3, true);  // by the operator
  Turn();
  Start();
  EXPECT_THAT(SentAfterWarmRestart(), ElementsAre(3));
}

TEST_F(EnforcerRestartTest, ANodeWithoutTenanciesSendsAnEmptyList) {
  restart_is_warm_ = true;
  Start();
  fabric_.down = fabric::WithFabricAnswer(absl::UnavailableError("still initialising"),
                                          {"fmGetSupportedFabricPartitions", -8});
  fabric_.failures.push_back({OkStatus(), true});
  Turn();
  ASSERT_TRUE(fabric_.sent.has_value());
  EXPECT_THAT(*fabric_.sent, IsEmpty());
}

TEST_F(EnforcerRestartTest, AColdFabricManagerIsToldNothingAndIsDirty) {
  ASSERT_TRUE(Acquire({1, 3}).ok());
  Assign({1, 3}, "default/a");
  Hold({1, 3});
  Turn();
  fabric_.SetActive(3, false);
  (void)events_.Take();
  Turns(20);
  EXPECT_THAT(events_.TakeNames(), Contains("fabric_dirty"));
  EXPECT_EQ(enforcer_->View().dirty, (fabric::ModuleSet{1, 3}));
  EXPECT_THAT(fabric_.calls, ElementsAre("+3")) << "what runs is left alone";
  Unassign({1, 3});
  holders_.held.clear();
  Turns(9);
  EXPECT_THAT(events_.TakeNames(), Contains("fabric_clean"));
  EXPECT_THAT(journal_.records, IsEmpty());
}

TEST_F(EnforcerRestartTest, AnotherLostPartitionLeavesItsNeighboursAlone) {
  ASSERT_TRUE(Acquire({1, 3}).ok());
  ASSERT_TRUE(Acquire({2, 4}).ok());
  Hold({1, 3, 2, 4});
  Assign({1, 3}, "default/a");
  Turn();
  Unassign({1, 3});
  holders_.held = {At(2), At(4)};
  Turns(8);
  EXPECT_THAT(fabric_.Active(), ElementsAre(4)) << "one tenancy never ends another";
}

TEST_F(EnforcerRestartTest, AnotherTableIsMatchedBySet) {
  ASSERT_TRUE(Acquire({1, 3}).ok());
  Assign({1, 3}, "default/a");
  for (auto& p : fabric_.list.partitions) p.id += 40;
  Turn();
  EXPECT_EQ(enforcer_->View().tenancies.at(0).partition, 43);
  Unassign({1, 3});
  Turns(9);
  EXPECT_THAT(fabric_.calls, ElementsAre("+3", "-43"));
}

TEST_F(EnforcerRestartTest, ASetThatVanishedIsReportedAndKeptWhileInUse) {
  ASSERT_TRUE(Acquire({1, 3}).ok());
  Assign({1, 3}, "default/a");
  std::erase_if(fabric_.list.partitions, [](const auto& p) { return p.id == 3; });
  Turns(9);
  EXPECT_THAT(events_.TakeNames(), Contains("partition_vanished"));
  EXPECT_EQ(journal_.records.size(), 1u);
  Unassign({1, 3});
  Turns(9);
  EXPECT_THAT(journal_.records, IsEmpty());
}

// ---- reboot ------------------------------------------------------------------------------------

class EnforcerRebootTest : public EnforcerRestartTest {
 protected:
  EnforcerRebootTest() {
    EXPECT_TRUE(Acquire({1, 3}).ok());
    Assign({1, 3}, "default/a");
    Turn();
    fabric_.calls.clear();
    fabric_.SetActive(3, false);
    options_.boot = {2, 2};
  }
};

TEST_F(EnforcerRebootTest, PreStartActivatesFromTheJournal) {
  Start();
  Turns(20);
  EXPECT_THAT(fabric_.calls, IsEmpty()) << "only when its container starts";
  EXPECT_TRUE(enforcer_->View().dirty.empty());
  const std::vector<TenancyDevice> devices = {DeviceAt(1), DeviceAt(3)};
  EXPECT_TRUE(enforcer_->PreStart(devices).ok());
  EXPECT_TRUE(enforcer_->PreStart(devices).ok());
  EXPECT_THAT(fabric_.calls, ElementsAre("+3"));
  EXPECT_EQ(journal_.records.begin()->second.boot, options_.boot);
}

TEST_F(EnforcerRebootTest, ForKataTheyAreActivatedBeforeTheyAreHealthy) {
  options_.reactivate_at_start = true;
  Start();
  EXPECT_THAT(enforcer_->Blocked(), Contains(::testing::Key(At(1))));
  enforcer_->Reconcile();
  EXPECT_THAT(fabric_.calls, ElementsAre("+3"));
  EXPECT_THAT(enforcer_->Blocked(), IsEmpty());
}

TEST_F(EnforcerRebootTest, ForKataTheGraceWaitsForALateFabricManager) {
  options_.reactivate_at_start = true;
  Unassign({1, 3});  // kubelet lists no pod whose devices are Unhealthy
  fabric_.down = absl::UnavailableError("starting");
  Start();
  Turns(30);
  fabric_.down = OkStatus();
  Turn();
  EXPECT_THAT(fabric_.calls, ElementsAre("+3"));
}

TEST_F(EnforcerRebootTest, OtherNodesAreUnhealthyUntilTheTenancyHasGone) {
  journal_.records.begin()->second.devices[0].iommu_group = 7;
  options_.reactivate_at_start = true;
  Start();
  enforcer_->Reconcile();
  EXPECT_THAT(fabric_.calls, IsEmpty());
  const auto blocked = enforcer_->Blocked();
  EXPECT_THAT(blocked.at(At(1)), HasSubstr("other device nodes"));
  EXPECT_THAT(std::string(enforcer_->PreStart(std::vector{DeviceAt(1), DeviceAt(3)}).message()),
              HasSubstr("other device nodes"));
  options_.reactivate_at_start = false;
  Start();
  Unassign({1, 3});
  List();
  EXPECT_FALSE(enforcer_->Blocked().empty()) << "right after a boot kubelet lists only some pods";
  Turns(9);
  EXPECT_THAT(enforcer_->Blocked(), IsEmpty());
  ASSERT_TRUE(Acquire({1, 3}).ok());
}

TEST_F(EnforcerRebootTest, WhoeverHasItsFormerNodeIsUnhealthyToo) {
  journal_.records.begin()->second.devices[0].iommu_group = DeviceAt(5).iommu_group;
  Start();
  EXPECT_EQ(enforcer_->Blocked().size(), 1u) << "PreStart refuses its pod";
  options_.reactivate_at_start = true;
  Start();
  const auto blocked = enforcer_->Blocked();
  EXPECT_THAT(blocked.at(At(5)), HasSubstr(At(1).ToString() + " had when tenancy"));
  EXPECT_EQ(blocked.size(), 3u) << "with the tenancy's two";
}

TEST_F(EnforcerRestartTest, ADrainOutlivesTheAgent) {
  ASSERT_TRUE(enforcer_->Drain(true).ok());
  Start();
  EXPECT_TRUE(enforcer_->View().draining);
  EXPECT_FALSE(Acquire({1}).ok());
  ASSERT_TRUE(enforcer_->Drain(false).ok());
  Start();
  EXPECT_TRUE(Acquire({1}).ok());
  journal_.writes = absl::ResourceExhaustedError("disk full");
  EXPECT_THAT(std::string(enforcer_->Drain(true).message()), HasSubstr("may be forgotten"));
  EXPECT_TRUE(enforcer_->View().draining);
}

TEST_F(EnforcerRebootTest, NothingOfAFormerBootIsSentToAWarmFabricManager) {
  restart_is_warm_ = true;
  fabric_.down = fabric::WithFabricAnswer(absl::UnavailableError("still initialising"),
                                          {"fmGetSupportedFabricPartitions", -8});
  fabric_.failures.push_back({OkStatus(), true});
  Start();
  ASSERT_FALSE(fabric_.sent.has_value() && !fabric_.sent->empty());
}

TEST_F(EnforcerRebootTest, WhatWasSeenActiveAgainIsSentToAWarmFabricManager) {
  restart_is_warm_ = true;
  fabric_.SetActive(3, true);
  Start();
  fabric_.down = fabric::WithFabricAnswer(absl::UnavailableError("still initialising"),
                                          {"fmGetSupportedFabricPartitions", -8});
  fabric_.failures.push_back({OkStatus(), true});
  Probe();
  ASSERT_TRUE(fabric_.sent.has_value());
  EXPECT_THAT(*fabric_.sent, ElementsAre(3)) << "the journal was not told of it yet";
}

TEST_F(EnforcerRestartTest, AHungFabricManagerIsAskedOnceAPass) {
  ASSERT_TRUE(Acquire({1, 3}).ok());
  ASSERT_TRUE(Acquire({2, 4}).ok());
  fabric_.SetActive(3, false);
  fabric_.SetActive(4, false);
  fabric_.calls.clear();
  options_.boot = {2, 2};
  options_.reactivate_at_start = true;
  Start();
  fabric_.failures.push_back({absl::DeadlineExceededError("no answer"), false});
  enforcer_->Reconcile();
  EXPECT_THAT(fabric_.calls, ElementsAre("+3"));
}

TEST_F(EnforcerRestartTest, PreStartNamesAPartitionInItsWay) {
  ASSERT_TRUE(Acquire({1, 3}).ok());
  fabric_.SetActive(3, false);
  fabric_.SetActive(0, true);  // all GPUs, by somebody else after the reboot
  options_.boot = {2, 2};
  Start();
  const Status start = enforcer_->PreStart(std::vector{DeviceAt(1), DeviceAt(3)});
  EXPECT_THAT(std::string(start.message()), HasSubstr("partition 0 is active and shares modules"));
  EXPECT_THAT(events_.TakeNames(), Not(Contains("invariant_refused")));
}

TEST_F(EnforcerRestartTest, PreStartNeedsOneTenancyAroundAllDevices) {
  ASSERT_TRUE(Acquire({1}).ok());
  ASSERT_TRUE(Acquire({3}).ok());
  EXPECT_TRUE(enforcer_->PreStart(std::vector{DeviceAt(1)}).ok());
  EXPECT_EQ(enforcer_->PreStart(std::vector{DeviceAt(1), DeviceAt(3)}).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(enforcer_->PreStart(std::vector{DeviceAt(5)}).code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace switchyard::tenancy
