// SPDX-License-Identifier: Apache-2.0
#include "sim/kubelet/device_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "sim/kubelet/checkpoint.h"

namespace switchyard::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

class ScriptedPlugin final : public PluginEndpoint {
 public:
  Result<std::vector<std::string>> GetPreferredAllocation(
      const PreferredRequest& request) override {
    if (on_prefer) return on_prefer(request);
    return std::vector<std::string>();
  }
  Result<std::optional<AllocateAnswer>> Allocate(const std::vector<std::string>& ids) override {
    if (on_allocate) return on_allocate(ids);
    return std::optional<AllocateAnswer>(AllocateAnswer());
  }

  Status PreStartContainer(const std::vector<std::string>& ids) override {
    return on_pre_start ? on_pre_start(ids) : OkStatus();
  }

  std::function<Result<std::vector<std::string>>(const PreferredRequest&)> on_prefer;
  std::function<Status(const std::vector<std::string>&)> on_pre_start;
  std::function<Result<std::optional<AllocateAnswer>>(const std::vector<std::string>&)> on_allocate;
};

struct TempFolder {
  TempFolder() {
    std::string name = "/tmp/sim-manager-XXXXXX";
    path = ::mkdtemp(name.data());
  }
  ~TempFolder() { std::filesystem::remove_all(path); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  std::string path;
};

ContainerSpec Container(const std::string& name, int gpus) {
  return {.name = name, .init = false, .restartable = false, .resources = {{"v/gpu", gpus}}};
}

class DeviceManagerTest : public ::testing::Test {
 protected:
  static constexpr PluginOptions kPreferred = {.preferred_available = true};
  static constexpr PluginOptions kPreStart = {.preferred_available = true,
                                              .pre_start_required = true};

  DeviceManagerTest() {
    manager_.Connected("v/gpu", plugin_, kPreferred);
    SendDevices({"a", "b", "c", "d"});
  }
  void SendDevices(const std::vector<std::string>& healthy) {
    std::vector<PluginDevice> devices;
    devices.reserve(healthy.size());
    for (const std::string& id : healthy) devices.push_back({id, "Healthy", {}});
    manager_.Update("v/gpu", devices);
  }
  Status Admit(PodUid pod, std::vector<ContainerSpec> containers) {
    PodSpec spec;
    spec.name = absl::StrCat("pod-", pod);
    spec.containers = std::move(containers);
    manager_.SetActive(pod, true);
    return manager_.Admit(pod, spec);
  }
  std::set<std::string> Held(PodUid pod, const std::string& container) {
    std::set<std::string> ids;
    for (const Allocation& allocation : manager_.Allocations(pod, container)) {
      for (const AllocatedDevice& device : allocation.devices) ids.insert(device.id);
    }
    return ids;
  }
  std::set<std::string> InUse() {
    std::set<std::string> ids;
    const ResourceReport gpu = manager_.Report().at("v/gpu");
    for (const DeviceReport& device : gpu.devices) {
      if (device.in_use) ids.insert(device.id);
    }
    return ids;
  }

  SimClock clock_;
  Changes changes_;
  CallLog log_{changes_};
  int stopped_ = 0;
  const TempFolder folder_;
  DeviceManager manager_{{.seed = 5, .checkpoint = folder_.path + "/checkpoint"},
                         [this] { ++stopped_; },
                         clock_,
                         changes_,
                         log_};
  std::shared_ptr<ScriptedPlugin> plugin_ = std::make_shared<ScriptedPlugin>();
};

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
  manager_.Connected("v/gpu", plugin_, {});
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
  manager_.Connected("v/nic", other, kPreferred);
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
  manager_.Connected("v/gpu", plugin_, kPreferred);
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

// The old stream of a plugin ends after it registered anew.
TEST_F(DeviceManagerTest, AStoppedEndpointIsNotCalledEvenIfItsDevicesAreBack) {
  manager_.Disconnected("v/gpu");
  EXPECT_EQ(stopped_, 1);
  SendDevices({"a"});
  EXPECT_EQ(Admit(1, {Container("x", 1)}).message(),
            "device plugin GetPreferredAllocation rpc failed with err: endpoint v/gpu has been "
            "stopped");
  manager_.Connected("v/gpu", plugin_, kPreferred);
  EXPECT_EQ(log_.counts().preferred, 0);
}

TEST_F(DeviceManagerTest, AResourceIsHandledOnceListedAndNoLongerOnceRemoved) {
  manager_.Connected("v/new", plugin_, kPreferred);
  EXPECT_FALSE(manager_.Handles("v/new"));
  manager_.Update("v/new", {});
  EXPECT_TRUE(manager_.Handles("v/new"));
  manager_.Disconnected("v/new");
  EXPECT_EQ(manager_.RemoveExpired(), absl::Minutes(5));
  manager_.Disconnected("v/gpu");
  clock_.Advance(absl::Minutes(5));
  EXPECT_FALSE(manager_.Handles("v/new"));
  manager_.Connected("v/gpu", plugin_, kPreferred);
  SendDevices({"a"});
  manager_.Disconnected("v/gpu");
  clock_.Advance(absl::Minutes(5));
  EXPECT_THAT(manager_.Report(), IsEmpty());
}

class PreStartTest : public DeviceManagerTest {
 protected:
  PreStartTest() { manager_.Connected("v/gpu", plugin_, kPreStart); }
};

TEST_F(PreStartTest, EachStartAsksForTheDevicesThatWereAllocated) {
  ASSERT_TRUE(Admit(1, {Container("x", 2), Container("y", 1)}).ok());
  EXPECT_EQ(log_.counts().pre_start, 0) << "admission is no start";
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(manager_.PreStart(1, Container("x", 2)).value());
  ASSERT_THAT(log_.pre_start(), SizeIs(2));
  const std::vector<std::string> ids = log_.pre_start()[1].ids;
  EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()), Held(1, "x"));
  EXPECT_EQ(log_.counts().allocate, 2);
}

TEST_F(PreStartTest, ARefusalIsTheStartsErrorInKubeletsWords) {
  ASSERT_TRUE(Admit(1, {Container("x", 2)}).ok());
  plugin_->on_pre_start = [](const auto&) { return absl::UnavailableError("not active"); };
  EXPECT_EQ(manager_.PreStart(1, Container("x", 2)).status().message(),
            "device plugin PreStartContainer rpc failed with err: not active");
  EXPECT_EQ(log_.pre_start().at(0).error, "not active");
  manager_.Disconnected("v/gpu");
  EXPECT_EQ(manager_.PreStart(1, Container("x", 2)).status().message(),
            "device plugin PreStartContainer rpc failed with err: endpoint v/gpu has been stopped");
}

TEST_F(PreStartTest, APluginThatWantsNoneIsNotAsked) {
  manager_.Connected("v/gpu", plugin_, kPreferred);
  ASSERT_TRUE(Admit(1, {Container("x", 2)}).ok());
  EXPECT_FALSE(manager_.PreStart(1, Container("x", 2)).value());
  EXPECT_EQ(log_.counts().pre_start, 0);
}

// kubelet knows the options of a plugin from its registration only.
TEST_F(PreStartTest, APluginThatIsNotBackSinceARestartIsNotAskedAndTheContainerMayStart) {
  ASSERT_TRUE(Admit(1, {Container("x", 2)}).ok());
  ASSERT_TRUE(manager_.Restart().ok());
  EXPECT_FALSE(manager_.PreStart(1, Container("x", 2)).value());
  EXPECT_EQ(log_.counts().pre_start, 0);
}

TEST_F(PreStartTest, WithoutARecordTheStartFailsForEverOrIsAllocatedAnew) {
  ASSERT_TRUE(Admit(1, {Container("x", 2)}).ok());
  std::filesystem::remove(folder_.path + "/checkpoint");
  ASSERT_TRUE(manager_.Restart().ok());
  manager_.Connected("v/gpu", plugin_, kPreStart);
  SendDevices({"a", "b", "c", "d"});
  EXPECT_EQ(manager_.PreStart(1, Container("x", 2)).status().message(),
            "no devices found allocated in local cache for pod "
            "00000000-0000-4000-8000-000000000001, container x, resource v/gpu");
  EXPECT_EQ(log_.counts().pre_start, 0);

  manager_.Connected("v/gpu", plugin_, kPreferred);
  EXPECT_TRUE(manager_.PreStart(1, Container("x", 2)).value());
  PodSpec spec;
  spec.containers = {Container("x", 2)};
  ASSERT_TRUE(manager_.Reallocate(1, spec, spec.containers[0]).ok());
  EXPECT_THAT(Held(1, "x"), SizeIs(2));
  EXPECT_FALSE(manager_.PreStart(1, Container("x", 2)).value());
}

TEST_F(DeviceManagerTest, TheCheckpointIsWrittenWithEachListAndEachAdmittedContainer) {
  const auto written = [this] { return ReadCheckpoint(folder_.path + "/checkpoint")->value(); };
  EXPECT_THAT(written().registered.at("v/gpu"), UnorderedElementsAre("a", "b", "c", "d"));
  SendDevices({"a", "b", "c"});
  EXPECT_THAT(written().registered.at("v/gpu"), SizeIs(3));
  ASSERT_TRUE(Admit(1, {Container("x", 2)}).ok());
  EXPECT_EQ(written().pods.Ids(1, "x", "v/gpu"), Held(1, "x"));

  manager_.SetActive(1, false);
  manager_.Reclaim();
  EXPECT_THAT(written().pods.pods(), ElementsAre(1)) << "reclaiming writes nothing";
  ASSERT_TRUE(manager_.Restart().ok());
  EXPECT_THAT(Held(1, "x"), SizeIs(2)) << "so an ended pod's devices come back";
  manager_.Reclaim();
  EXPECT_THAT(Held(1, "x"), IsEmpty());

  manager_.Disconnected("v/gpu");
  clock_.Advance(absl::Minutes(5));
  (void)manager_.RemoveExpired();
  EXPECT_THAT(written().registered, IsEmpty());
}

TEST_F(DeviceManagerTest, AnAdmissionWhoseCheckpointCantBeWrittenFails) {
  std::filesystem::remove_all(folder_.path);
  EXPECT_THAT(std::string(Admit(1, {Container("x", 2)}).message()),
              ::testing::HasSubstr("checkpoint"));
}

TEST_F(DeviceManagerTest, ADamagedCheckpointIsNoneAndARealKubeletsIsRefused) {
  ASSERT_TRUE(Admit(1, {Container("x", 2)}).ok());
  const std::string path = folder_.path + "/checkpoint";
  std::filesystem::resize_file(path, 20);
  ASSERT_TRUE(manager_.Restart().ok());
  EXPECT_FALSE(manager_.Handles("v/gpu"));
  EXPECT_THAT(Held(1, "x"), IsEmpty());
  std::ofstream(path)
      << R"({"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}},"Checksum":7})";
  EXPECT_TRUE(absl::IsFailedPrecondition(manager_.Restart()));
}

TEST_F(DeviceManagerTest, ARunningContainerIsAdmittedAgainWithoutALook) {
  ASSERT_TRUE(Admit(1, {Container("x", 2)}).ok());
  ASSERT_TRUE(manager_.Restart().ok());
  PodSpec spec;
  spec.containers = {Container("x", 2)};
  EXPECT_FALSE(manager_.Admit(1, spec).ok());
  EXPECT_TRUE(manager_.Admit(1, spec, {"x"}).ok());
}

}  // namespace
}  // namespace switchyard::sim
