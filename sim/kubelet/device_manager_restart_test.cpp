// SPDX-License-Identifier: Apache-2.0
// The device manager before a container's start, and what its checkpoint keeps.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "sim/kubelet/checkpoint.h"
#include "sim/kubelet/device_manager_fixture_for_test.h"

namespace switchyard::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

class PreStartTest : public DeviceManagerTest {
 protected:
  PreStartTest() { Connect("v/gpu", plugin_, kPreStart); }
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
  Disconnect("v/gpu");
  EXPECT_EQ(manager_.PreStart(1, Container("x", 2)).status().message(),
            "device plugin PreStartContainer rpc failed with err: endpoint v/gpu has been stopped");
}

TEST_F(PreStartTest, APluginThatWantsNoneIsNotAsked) {
  Connect("v/gpu", plugin_, kPreferred);
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
  Connect("v/gpu", plugin_, kPreStart);
  SendDevices({"a", "b", "c", "d"});
  EXPECT_EQ(manager_.PreStart(1, Container("x", 2)).status().message(),
            "no devices found allocated in local cache for pod "
            "00000000-0000-4000-8000-000000000001, container x, resource v/gpu");
  EXPECT_EQ(log_.counts().pre_start, 0);

  Connect("v/gpu", plugin_, kPreferred);
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

  Disconnect("v/gpu");
  clock_.Advance(absl::Minutes(5));
  (void)manager_.RemoveExpired();
  EXPECT_THAT(written().registered, IsEmpty());
}

TEST_F(DeviceManagerTest, AnAdmissionWhoseCheckpointCantBeWrittenFails) {
  std::filesystem::remove_all(folder_.path);
  EXPECT_THAT(std::string(Admit(1, {Container("x", 2)}).message()), HasSubstr("checkpoint"));
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
