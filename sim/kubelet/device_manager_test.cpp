// SPDX-License-Identifier: Apache-2.0
#include "sim/kubelet/device_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/kubelet/device_manager_fixture_for_test.h"

namespace switchyard::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

TEST_F(DeviceManagerTest, AllocatesForEachContainerAndNeverTwice) {
  ASSERT_TRUE(Admit(1, {Container("x", 2), Container("y", 1)}).ok());
  EXPECT_THAT(Held(1, "x"), SizeIs(2));
  EXPECT_THAT(Held(1, "y"), SizeIs(1));
  EXPECT_THAT(InUse(), SizeIs(3));
  EXPECT_EQ(Admit(2, {Container("x", 2)}).message(),
            "requested number of devices unavailable for v/gpu. Requested: 2, Available: 1");
  ASSERT_TRUE(Admit(3, {Container("x", 1)}).ok());
  EXPECT_THAT(InUse(), SizeIs(4));
}

TEST_F(DeviceManagerTest, AnEndedPodsDevicesAreFreeOnceReclaimed) {
  ASSERT_TRUE(Admit(1, {Container("x", 3)}).ok());
  manager_.SetActive(1, false);
  EXPECT_THAT(InUse(), SizeIs(3));
  manager_.Reclaim();
  EXPECT_THAT(InUse(), IsEmpty());
  ASSERT_TRUE(Admit(2, {Container("x", 3)}).ok());
  manager_.SetActive(2, false);
  EXPECT_TRUE(Admit(3, {Container("x", 4)}).ok());  // an admission reclaims first
}

TEST_F(DeviceManagerTest, AContainerTakesOverTheDevicesOfTheInitContainers) {
  ContainerSpec init = Container("init", 2);
  init.init = true;
  // In the order of the pod's spec the regular containers may stand first: init ones go first.
  ASSERT_TRUE(Admit(1, {Container("main", 3), Container("second", 1), init}).ok());
  EXPECT_TRUE(std::ranges::includes(Held(1, "main"), Held(1, "init")));
  EXPECT_FALSE(std::ranges::includes(Held(1, "main"), Held(1, "second")));
  EXPECT_EQ(log_.counts().allocate, 3);
  EXPECT_EQ(log_.counts().preferred, 3);
  EXPECT_THAT(log_.preferred()[1].must_include, SizeIs(2));
}

TEST_F(DeviceManagerTest, ASidecarKeepsItsDevices) {
  ContainerSpec sidecar = Container("sidecar", 2);
  sidecar.init = sidecar.restartable = true;
  ASSERT_TRUE(Admit(1, {sidecar, Container("main", 2)}).ok());
  EXPECT_THAT(InUse(), SizeIs(4));
}

TEST_F(DeviceManagerTest, AnErrorOfAllocateRestoresTheRecordOfWhatIsInUse) {
  plugin_->on_allocate = [](const auto&) { return absl::InternalError("busy"); };
  EXPECT_EQ(Admit(1, {Container("x", 2)}).message(), "busy");
  EXPECT_THAT(InUse(), IsEmpty());
  EXPECT_THAT(Held(1, "x"), IsEmpty());
  EXPECT_EQ(log_.allocate().at(0).error, "busy");
}

TEST_F(DeviceManagerTest, AnErrorInTheSecondContainerLeavesTheFirstOnesDevicesUntilReclaimed) {
  int calls = 0;
  plugin_->on_allocate = [&](const auto&) -> Result<std::optional<AllocateAnswer>> {
    if (++calls == 2) return absl::InternalError("busy");
    return AllocateAnswer();
  };
  EXPECT_FALSE(Admit(1, {Container("x", 2), Container("y", 1)}).ok());
  manager_.SetActive(1, false);
  EXPECT_EQ(InUse(), Held(1, "x"));
  EXPECT_TRUE(Admit(2, {Container("x", 4)}).ok());
}

// kubelet forgets to restore its record here.
TEST_F(DeviceManagerTest, AnAnswerWithoutAContainerFailsAndItsDevicesStayInUseUntilARebuild) {
  plugin_->on_allocate = [](const auto&) { return std::optional<AllocateAnswer>(); };
  EXPECT_EQ(Admit(1, {Container("x", 2)}).message(), "no containers return in allocation response");
  EXPECT_THAT(InUse(), SizeIs(2));
  manager_.SetActive(1, false);
  manager_.Reclaim();  // pod 1 never was recorded, so nothing has ended
  EXPECT_THAT(InUse(), SizeIs(2));
  ASSERT_TRUE(manager_.Restart().ok());
  SendDevices({"a", "b", "c", "d"});
  EXPECT_THAT(InUse(), IsEmpty());
}

TEST_F(DeviceManagerTest, AnErrorOfGetPreferredAllocationFailsTheAdmission) {
  plugin_->on_prefer = [](const auto&) { return absl::InternalError("rpc error"); };
  EXPECT_EQ(Admit(1, {Container("x", 1)}).message(),
            "device plugin GetPreferredAllocation rpc failed with err: rpc error");
  EXPECT_EQ(log_.counts().allocate, 0);
}

TEST_F(DeviceManagerTest, APluginThatDoesNotOfferAPreferenceIsNotAsked) {
  Connect("v/gpu", plugin_, {});
  ASSERT_TRUE(Admit(1, {Container("x", 1)}).ok());
  EXPECT_EQ(log_.counts().preferred, 0);
}

TEST_F(DeviceManagerTest, APodsHintLimitsWhatThePluginIsAskedAbout) {
  manager_.Update("v/gpu", {{"a", "Healthy", {0}}, {"b", "Healthy", {1}}, {"c", "Healthy", {1}}});
  PodSpec spec{.name = "pod", .containers = {Container("x", 1)}, .numa_affinity = {{1}}};
  ASSERT_TRUE(manager_.Admit(1, spec).ok());
  EXPECT_THAT(log_.preferred().at(0).available, UnorderedElementsAre("b", "c"));
  EXPECT_THAT(manager_.Allocations(1, "x").at(0).devices.at(0).numa_nodes, ElementsAre(1));
}

TEST_F(DeviceManagerTest, AllocateGetsTheIdsInRandomOrder) {
  bool unsorted = false;
  plugin_->on_allocate = [&](const auto& ids) {
    unsorted |= !std::ranges::is_sorted(ids);
    return std::optional<AllocateAnswer>(AllocateAnswer());
  };
  for (PodUid pod = 1; pod < 20; ++pod) {
    ASSERT_TRUE(Admit(pod, {Container("x", 4)}).ok());
    manager_.SetActive(pod, false);
  }
  EXPECT_TRUE(unsorted);
}

TEST_F(DeviceManagerTest, TheFirstAnswerOfAContainerWinsOnAConflict) {
  const auto other = std::make_shared<ScriptedPlugin>();
  Connect("v/nic", other, kPreferred);
  manager_.Update("v/nic", {{"n", "Healthy", {}}});
  std::vector<std::string> order;
  const auto answer = [&](const std::string& who) {
    return [&order, who](const auto&) {
      order.push_back(who);
      return std::optional<AllocateAnswer>(
          AllocateAnswer{.envs = {{"WHO", who}, {who, "1"}},
                         .annotations = {{"who", who}},
                         .nodes = {{"/dev/vfio/vfio", who, "rw"}, {who, who, "rw"}},
                         .mounts = {{"/run/x", who, true}},
                         .cdi_devices = {"v/x=same"}});
    };
  };
  plugin_->on_allocate = answer("gpu");
  other->on_allocate = answer("nic");
  ContainerSpec container = Container("x", 1);
  container.resources["v/nic"] = 1;
  ASSERT_TRUE(Admit(1, {container}).ok());
  const ContainerResult result = MergeAnswers("x", manager_.Allocations(1, "x"));
  EXPECT_THAT(result.envs,
              UnorderedElementsAre(Pair("WHO", order[0]), Pair("gpu", "1"), Pair("nic", "1")));
  EXPECT_THAT(result.annotations, ElementsAre(Pair("who", order[0])));
  EXPECT_THAT(result.nodes, SizeIs(3));
  EXPECT_EQ(result.nodes[0].host_path, order[0]);
  EXPECT_THAT(result.mounts, ElementsAre(ContainerMount{"/run/x", order[0], true}));
  EXPECT_THAT(result.cdi_devices, ElementsAre("v/x=same"));
  EXPECT_THAT(result.devices,
              UnorderedElementsAre(Pair("v/gpu", SizeIs(1)), Pair("v/nic", ElementsAre("n"))));
}

// kubernetes#137534. A List rebuilds the record only if a pod has ended since the last look.
class InFlightTest : public DeviceManagerTest {
 protected:
  // Admits pod 2 and reclaims while its Allocate runs; what each pod got then and after.
  void AdmitWithAListInFlight() {
    plugin_->on_allocate = [this](const auto&) {
      manager_.Reclaim();
      in_use_in_flight_ = InUse();
      return std::optional<AllocateAnswer>(AllocateAnswer());
    };
    ASSERT_TRUE(Admit(2, {Container("x", 3)}).ok());
    plugin_->on_allocate = nullptr;
  }
  std::set<std::string> in_use_in_flight_;
};

TEST_F(InFlightTest, AListDuringAllocateAfterAPodEndedLetsADeviceGoTwice) {
  ASSERT_TRUE(Admit(1, {Container("x", 1)}).ok());
  plugin_->on_prefer = [this](const auto&) {
    manager_.SetActive(1, false);  // ends after the admission of pod 2 has looked
    return std::vector<std::string>();
  };
  AdmitWithAListInFlight();
  EXPECT_THAT(in_use_in_flight_, IsEmpty());
  ASSERT_TRUE(Admit(3, {Container("x", 3)}).ok());  // of four devices, with three held
  std::vector<std::string> both;
  std::ranges::set_intersection(Held(2, "x"), Held(3, "x"), std::back_inserter(both));
  EXPECT_FALSE(both.empty());
}

TEST_F(InFlightTest, AListDuringAllocateChangesNothingIfNoPodHasEnded) {
  AdmitWithAListInFlight();
  EXPECT_EQ(in_use_in_flight_, Held(2, "x"));
  EXPECT_FALSE(Admit(3, {Container("x", 3)}).ok());
}

TEST_F(DeviceManagerTest, ARestartKeepsAllocationsAndForgetsDevices) {
  ASSERT_TRUE(Admit(1, {Container("x", 2)}).ok());
  ASSERT_TRUE(manager_.Restart().ok());
  EXPECT_TRUE(manager_.Handles("v/gpu"));
  EXPECT_EQ(manager_.Report().at("v/gpu").capacity, 0);
  EXPECT_EQ(Admit(2, {Container("x", 1)}).message(),
            "no healthy devices present; cannot allocate unhealthy devices v/gpu");
  Connect("v/gpu", plugin_, kPreferred);
  SendDevices({"a", "b", "c", "d"});
  EXPECT_EQ(InUse(), Held(1, "x"));
  EXPECT_FALSE(Admit(3, {Container("x", 3)}).ok());
}

TEST_F(DeviceManagerTest, AdmissionAgainAsksNothingButWantsTheSameHealthyDevices) {
  ASSERT_TRUE(Admit(1, {Container("x", 2)}).ok());
  const std::set<std::string> held = Held(1, "x");
  EXPECT_TRUE(Admit(1, {Container("x", 2)}).ok());
  EXPECT_EQ(log_.counts().allocate, 1);
  EXPECT_FALSE(Admit(1, {Container("x", 1)}).ok());
  std::vector<std::string> others;
  std::ranges::set_difference(std::set<std::string>{"a", "b", "c", "d"}, held,
                              std::back_inserter(others));
  SendDevices(others);
  EXPECT_EQ(Admit(1, {Container("x", 2)}).message(),
            "previously allocated devices are no longer healthy; cannot allocate unhealthy devices "
            "v/gpu");
}

// Its stream is still open, but kubelet has forgotten it.
TEST_F(DeviceManagerTest, AStoppedEndpointIsNotCalledEvenIfItsDevicesAreBack) {
  Disconnect("v/gpu");
  EXPECT_EQ(stopped_, 1);
  SendDevices({"a"});
  EXPECT_EQ(Admit(1, {Container("x", 1)}).message(),
            "device plugin GetPreferredAllocation rpc failed with err: endpoint v/gpu has been "
            "stopped");
  Connect("v/gpu", plugin_, kPreferred);
  EXPECT_EQ(log_.counts().preferred, 0);
}

TEST_F(DeviceManagerTest, AResourceIsHandledOnceListedAndNoLongerOnceRemoved) {
  Connect("v/new", plugin_, kPreferred);
  EXPECT_FALSE(manager_.Handles("v/new"));
  manager_.Update("v/new", {});
  EXPECT_TRUE(manager_.Handles("v/new"));
  Disconnect("v/new");
  EXPECT_EQ(manager_.RemoveExpired(), absl::Minutes(5));
  Disconnect("v/gpu");
  clock_.Advance(absl::Minutes(5));
  EXPECT_FALSE(manager_.Handles("v/new"));
  Connect("v/gpu", plugin_, kPreferred);
  SendDevices({"a"});
  Disconnect("v/gpu");
  clock_.Advance(absl::Minutes(5));
  EXPECT_THAT(manager_.Report(), IsEmpty());
}

}  // namespace
}  // namespace switchyard::sim
