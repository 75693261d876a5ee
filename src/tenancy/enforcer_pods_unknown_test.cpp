// SPDX-License-Identifier: Apache-2.0
// A kubelet that need not know its pods yet: what it lists counts, what it does not list says
// nothing.

#include <gmock/gmock.h>

#include "tenancy/enforcer.h"
#include "tenancy/testing/enforcer_fixture.h"

namespace switchyard::tenancy {
namespace {

using testing::At;
using ::testing::Contains;
using testing::DeviceAt;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kWhy[] = "kubelet has not shown yet that it knows its pods";

class EnforcerPodsUnknownTest : public testing::EnforcerFixture {
 protected:
  EnforcerPodsUnknownTest() {
    Start();
    EXPECT_TRUE(Acquire({1, 3}).ok());
    Assign({1, 3}, "default/a");
    Turn();
    KubeletKnowsNothing();
  }
  void KubeletKnowsNothing() {
    source_.answer->clear();
    source_.whole = false;
  }
  // The node's power comes back before the API server does.
  void Reboot() {
    fabric_.SetActive(3, false);
    options_.boot = {2, 2};
    Start();
  }
  std::string Why() const { return enforcer_->PlanReconcile().at(0).why; }
};

TEST_F(EnforcerPodsUnknownTest, AKubeletThatRestartsWithoutTheApiServerEndsNothing) {
  Turns(100);
  EXPECT_THAT(fabric_.Active(), ElementsAre(3));
  EXPECT_THAT(Why(), HasSubstr(kWhy));
  EXPECT_TRUE(enforcer_->View().pods_unknown);
}

TEST_F(EnforcerPodsUnknownTest, ARebootWithoutTheApiServerEndsNothing) {
  Reboot();
  Turns(100);
  EXPECT_THAT(Why(), HasSubstr(kWhy));
  const std::vector<TenancyDevice> devices = {DeviceAt(1), DeviceAt(3)};
  EXPECT_TRUE(enforcer_->PreStart(devices).ok()) << "kubelet starts it from its checkpoint";
  EXPECT_THAT(fabric_.Active(), ElementsAre(3));
}

TEST_F(EnforcerPodsUnknownTest, OtherNodesStayUnhealthy) {
  journal_.records.begin()->second.devices[0].iommu_group = 7;
  options_.reactivate_at_start = true;
  Reboot();
  Turns(100);
  EXPECT_THAT(enforcer_->Blocked(), Contains(::testing::Key(At(1))));
  source_.whole = true;
  Turns(9);
  EXPECT_THAT(enforcer_->Blocked(), IsEmpty());
}

TEST_F(EnforcerPodsUnknownTest, TheGraceBeginsWithTheFirstWholeList) {
  Turns(100);
  source_.whole = true;
  Turns(7);
  EXPECT_THAT(fabric_.Active(), ElementsAre(3));
  EXPECT_FALSE(enforcer_->View().pods_unknown);
  KubeletKnowsNothing();  // again: what was agreed before counts no more
  Turn();
  source_.whole = true;
  Turns(7);
  EXPECT_THAT(fabric_.Active(), ElementsAre(3));
  Turn();
  EXPECT_THAT(fabric_.Active(), IsEmpty());
}

TEST_F(EnforcerPodsUnknownTest, WhatItListsCounts) {
  ASSERT_TRUE(Acquire({5}).ok());
  Assign({5}, "kube-system/static-n1");
  Turn();
  const EnforceView view = enforcer_->View();
  EXPECT_TRUE(view.tenancies.at(1).listed);
  EXPECT_EQ(view.tenancies.at(1).record.owner, (Owner{"pod", "kube-system/static-n1"}));
}

TEST_F(EnforcerPodsUnknownTest, TheNextPodGetsThemAllTheSame) {
  Turns(10);
  EXPECT_TRUE(Acquire({1, 2, 3, 4}).ok());
  EXPECT_THAT(fabric_.Active(), ElementsAre(1));
}

TEST_F(EnforcerPodsUnknownTest, TheOperatorReleasesWithForceOnly) {
  Turns(10);
  const std::uint64_t id = journal_.records.begin()->first;
  EXPECT_THAT(std::string(enforcer_->ReleaseById(id, false).message()), HasSubstr(kWhy));
  EXPECT_TRUE(enforcer_->ReleaseById(id, true).ok());
  EXPECT_THAT(fabric_.Active(), IsEmpty());
}

TEST_F(EnforcerPodsUnknownTest, ItIsToldOnceIfItLasts) {
  (void)events_.Take();
  Turns(7);
  EXPECT_THAT(events_.TakeNames(), Not(Contains("assignments_incomplete")));
  Turns(20);
  EXPECT_THAT(events_.TakeNames(), ElementsAre("assignments_incomplete"));
  source_.whole = true;
  Assign({1, 3}, "default/a");
  Turn();
  EXPECT_THAT(events_.TakeNames(), ElementsAre("assignments_complete"));
  Turns(20);
  EXPECT_THAT(events_.TakeNames(), IsEmpty());
}

TEST_F(EnforcerPodsUnknownTest, WhoeverRunsIsNoOrphan) {
  Hold({1, 3});
  Turns(20);
  EXPECT_THAT(events_.TakeNames(), Not(Contains("tenancy_orphaned")));
  source_.whole = true;
  Turn();
  EXPECT_THAT(events_.TakeNames(), Contains("tenancy_orphaned"));
}

TEST_F(EnforcerPodsUnknownTest, APartitionOfNobodyIsNotCalledUnused) {
  fabric_.SetActive(12, true);  // module 6
  Turns(10);
  const auto since = [this] { return enforcer_->View().partitions.at(12).stale_since; };
  EXPECT_FALSE(since().has_value());
  fabric_.SetActive(12, false);  // lost
  Turns(10);
  EXPECT_EQ(enforcer_->View().dirty, fabric::ModuleSet{6});
  source_.whole = true;
  Turn();
  EXPECT_TRUE(enforcer_->View().dirty.empty());
  fabric_.SetActive(12, true);
  Turn();
  EXPECT_TRUE(since().has_value());
}

}  // namespace
}  // namespace switchyard::tenancy
