// SPDX-License-Identifier: Apache-2.0
// fabric.mode enforce on the whole binary: what is active is exactly what pods were given.

#include <gmock/gmock.h>

#include <thread>

#include "absl/strings/str_join.h"
#include "tests/node/node_test.h"

namespace switchyard::sim {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class EnforceTest : public NodeTest {
 protected:
  void Up(YamlOverrides overrides = {}) {
    MakeNode();
    Start(std::move(overrides));
  }
  void Start(YamlOverrides overrides = {}) {
    overrides["fabric.mode"] = "enforce";
    overrides["fabric.probeInterval"] = "1s";
    StartAgent(overrides);
  }
  // The partition of a pod that must have one.
  int Partition(const PodStatus& pod) {
    EXPECT_TRUE(pod.admitted) << pod.message;
    const std::optional<int> partition = PartitionOf(Modules(pod));
    EXPECT_TRUE(partition.has_value()) << absl::StrJoin(Modules(pod), ",");
    return partition.value_or(-1);
  }
  // As each node has.
  void AddDaemon() {
    const PodSpec daemon{"kube-system", "daemon", {{"main", false, false, {}}}, {}};
    ASSERT_TRUE(node_->kubelet().AddPod(daemon).admitted);
  }
  bool Remove(const std::string& pod) { return node_->kubelet().RemovePod("default", pod); }
};

TEST_F(EnforceTest, WhatPodsWereGivenIsActiveAndNothingElse) {
  Up();
  EXPECT_THAT(node_->fm().active(), IsEmpty());
  std::set<int> given;
  for (const auto& [name, size] :
       std::vector<std::pair<std::string, int>>{{"a", 4}, {"b", 2}, {"c", 1}}) {
    given.insert(Partition(AddPod(name, size)));
    EXPECT_EQ(node_->fm().active(), given) << name;
  }
}

TEST_F(EnforceTest, ASetThatIsNoPartitionIsRefusedAndActivatesNothing) {
  Up();
  const PodStatus pod = AddPod("three", 3);
  EXPECT_FALSE(pod.admitted);
  EXPECT_THAT(pod.message, HasSubstr("no partition"));
  EXPECT_THAT(node_->fm().active(), IsEmpty());
}

TEST_F(EnforceTest, AGonePodsPartitionGivesWayToTheNextAtOnce) {
  Up();
  Partition(AddPod("a", 2));
  ASSERT_TRUE(Remove("a"));
  const int all = Partition(AddPod("all", 8));
  EXPECT_EQ(node_->fm().active(), std::set<int>{all});
}

TEST_F(EnforceTest, AGonePodsPartitionIsReleasedAfterTheGrace) {
  Up({{"tenancy.grace", "1s"}});
  AddDaemon();
  Partition(AddPod("a", 2));
  ASSERT_TRUE(Remove("a"));
  EXPECT_TRUE(node_->fm().AwaitActive({}, kPatience));
}

TEST_F(EnforceTest, NothingIsReleasedBeforeKubeletHasNamedAPod) {
  Up({{"tenancy.grace", "1s"}});
  const int mine = Partition(AddPod("a", 2));
  agent_->Kill();
  ASSERT_TRUE(WaitForKubelet([&] { return Report().allocatable == 0; }));
  ASSERT_TRUE(Remove("a"));  // or kubelet started without the API server: this agent can't tell
  Start({{"tenancy.grace", "1s"}});
  WaitForLog("event=assignments_incomplete");
  EXPECT_EQ(node_->fm().active(), std::set<int>{mine});
  AddDaemon();
  EXPECT_TRUE(node_->fm().AwaitActive({}, kPatience));
}

TEST_F(EnforceTest, AKilledAgentFindsItsTenanciesAgain) {
  Up({{"tenancy.grace", "1s"}});
  const int before = Partition(AddPod("a", 4));
  agent_->Kill();
  // Else what kubelet knows may be the killed one's.
  ASSERT_TRUE(WaitForKubelet([&] { return Report().allocatable == 0; }));
  Start({{"tenancy.grace", "1s"}});
  ASSERT_TRUE(WaitForKubelet([&] { return Report().allocatable == 8; }));
  const int after = Partition(AddPod("b", 4));
  EXPECT_EQ(node_->fm().active(), (std::set<int>{before, after}));
  ASSERT_TRUE(Remove("a"));
  EXPECT_TRUE(node_->fm().AwaitActive({after}, kPatience));
}

TEST_F(EnforceTest, AWarmFabricManagerIsToldWhatWasActive) {
  Up({{"fabric.restart", "warm"}});
  const int mine = Partition(AddPod("a", 2));
  ASSERT_TRUE(node_->fm().Restart(FabricManager::Kind::kWarm).ok());
  EXPECT_TRUE(node_->fm().AwaitActive({mine}, kPatience));
  EXPECT_EQ(node_->fm().routed(), std::set<int>{mine});
  EXPECT_TRUE(AddPod("b", 2).admitted);
}

TEST_F(EnforceTest, WithoutFabricManagerFreeDevicesAreUnhealthy) {
  Up();
  Partition(AddPod("a", 2));
  node_->fm().Stop();
  EXPECT_TRUE(WaitForKubelet([&] { return Report().allocatable == 2; }));
  ASSERT_TRUE(node_->fm().Start().ok());
  EXPECT_TRUE(WaitForKubelet([&] { return Report().allocatable == 8; }));
}

// The next probe is an hour away, and a pod finds that Fabric Manager is gone.
TEST_F(EnforceTest, AFabricManagerThatIsDownIsAskedSoonWhateverTheInterval) {
  MakeNode();
  StartAgent({{"fabric.mode", "enforce"}, {"fabric.probeInterval", "1h"}});
  ASSERT_TRUE(WaitForKubelet([&] { return Report().allocatable == 8; }));
  node_->fm().Stop();
  EXPECT_FALSE(AddPod("a", 2).admitted);
  WaitForLog("event=fabric_down");
  ASSERT_TRUE(node_->fm().Start().ok());
  EXPECT_TRUE(WaitForKubelet([&] { return Report().allocatable == 8; }));
  EXPECT_TRUE(AddPod("b", 2).admitted);
}

TEST_F(EnforceTest, APodThatIsBeingAdmittedAtTheStopGetsItsDevices) {
  Up();
  FabricManagerFaults slow;
  slow.change_time = absl::Seconds(3);
  node_->fm().SetFaults(slow);
  PodStatus pod;
  std::thread admission([&] { pod = AddPod("a", 2); });
  EXPECT_TRUE(node_->fm().AwaitCalls(WireCall::kActivate, 1, kPatience));
  EXPECT_EQ(agent_->Stop(), 0);
  admission.join();
  EXPECT_TRUE(pod.admitted) << pod.message;
}

TEST_F(EnforceTest, AHungFabricManagerDoesNotHoldUpTheStop) {
  Up({{"fabric.timeout", "2s"}});
  FabricManagerFaults hung;
  hung.hang = FabricManagerFaults::Hang::kActivate;
  node_->fm().SetFaults(hung);
  PodStatus pod;
  std::thread admission([&] { pod = AddPod("a", 2); });
  EXPECT_TRUE(node_->fm().AwaitHeldCall(kPatience));
  EXPECT_EQ(agent_->Stop(), 0);
  admission.join();
  EXPECT_FALSE(pod.admitted);
  EXPECT_THAT(pod.message, HasSubstr("gave no answer"));
}

}  // namespace
}  // namespace switchyard::sim
