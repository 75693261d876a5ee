// SPDX-License-Identifier: Apache-2.0
// Devices that come, go, change driver and number, under both contracts.

#include <gmock/gmock.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "tests/node/node_test.h"

namespace switchyard::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DeviceTest : public NodeTest {
 protected:
  bool Waits(int allocatable) {
    return WaitForKubelet([this, allocatable] { return Report().allocatable == allocatable; });
  }
};

TEST_F(DeviceTest, AVanishedGpuIsUnhealthyAndHealthyAgainWhenItIsBack) {
  MakeNode();
  StartAgent();
  const PciAddress gpu = node_->AddressOf(3);
  ASSERT_TRUE(node_->sysfs().Vanish(gpu).ok());
  EXPECT_TRUE(Waits(7));
  EXPECT_EQ(Report().capacity, 8) << "capacity stays physical";
  ASSERT_TRUE(node_->sysfs().Return(gpu).ok());
  EXPECT_TRUE(Waits(8));
}

TEST_F(DeviceTest, AReboundGpuIsUnhealthyUntilItIsOnVfioAgain) {
  MakeNode();
  StartAgent();
  const PciAddress gpu = node_->AddressOf(3);
  ASSERT_TRUE(node_->sysfs().SetDriver(gpu, "nvidia").ok());
  EXPECT_TRUE(Waits(7));
  ASSERT_TRUE(node_->sysfs().SetDriver(gpu, "vfio-pci").ok());
  EXPECT_TRUE(Waits(8));
}

TEST_F(DeviceTest, AGpuWithAnUnhealthyModuleIsNoPartOfAPreference) {
  MakeNode();
  StartAgent();
  WaitForLog("event=fabric_up");
  ASSERT_TRUE(node_->sysfs().Vanish(node_->AddressOf(1)).ok());
  ASSERT_TRUE(Waits(7));
  const PodStatus pod = AddPod("a", 4);
  EXPECT_THAT(Modules(pod), ElementsAre(5, 6, 7, 8));
}

TEST_F(DeviceTest, OneBrokenDeviceIsReportedAndTheOthersAreOffered) {
  MakeNode();
  ASSERT_TRUE(node_->sysfs().Break(node_->AddressOf(2), Defect::kShortResource).ok());
  StartAgent();
  EXPECT_EQ(Report().allocatable, 7);
  EXPECT_THAT(WaitForLog("event=device_unreadable"), HasSubstr(node_->AddressOf(2).ToString()));
}

TEST_F(DeviceTest, ACompanionOnAForeignDriverMakesTheGpuUnhealthyAndIsNamed) {
  MakeNode();
  const PciAddress gpu = node_->AddressOf(4);
  FunctionSpec audio = CompanionSpec(gpu, 0, Companion::kAudio);
  audio.driver = "snd_hda_intel";
  ASSERT_TRUE(node_->sysfs().Add(audio, gpu).ok());
  StartAgent();
  EXPECT_EQ(Report().allocatable, 7);
  EXPECT_THAT(Get("/v1/resources"), HasSubstr("snd_hda_intel"));
  ASSERT_TRUE(node_->sysfs().SetDriver(audio.address, "").ok());
  EXPECT_TRUE(Waits(8)) << "a companion on no driver leaves the group viable";
}

TEST_F(DeviceTest, TwoGpusInOneGroupAreOneDevice) {
  MakeNode();
  // Modules 1 and 3 are a pair: both in one group is a device that is partition 3 by itself.
  ASSERT_TRUE(node_->sysfs().ShareGroup(node_->AddressOf(1), node_->AddressOf(3)).ok());
  StartAgent();
  EXPECT_EQ(Report().capacity, 7);
  WaitForLog("event=devices_grouped");
}

TEST_F(DeviceTest, DevicesOnTheNvidiaDriverAreNotOffered) {
  MakeNode({.driver = "nvidia"});
  StartAgent({}, /*wait=*/false);
  WaitForLog("the agent is running");
  EXPECT_THAT(node_->kubelet().Resources(), IsEmpty());
  for (const BoardDevice& device : node_->board().devices) {
    ASSERT_TRUE(node_->sysfs().SetDriver(device.address, "vfio-pci").ok());
  }
  EXPECT_TRUE(Waits(8));
}

TEST_F(DeviceTest, TheMapLearnedFromNvmlServesGpusThatMovedToVfio) {
  MakeNode({.driver = "nvidia"});
  ASSERT_TRUE(node_->SetModuleMap(ModuleMapFile::kMissing).ok());
  StartAgent({}, /*wait=*/false);
  WaitForLog("event=map_changed");
  for (const BoardDevice& device : node_->board().devices) {
    ASSERT_TRUE(node_->sysfs().SetDriver(device.address, "vfio-pci").ok());
  }
  ASSERT_TRUE(Waits(8));
  EXPECT_TRUE(PartitionOf(Modules(AddPod("a", 2))).has_value());
}

TEST_F(DeviceTest, AMalformedMapIsAnErrorThatNamesTheFileAndNoPreference) {
  MakeNode();
  ASSERT_TRUE(node_->SetModuleMap(ModuleMapFile::kMalformed).ok());
  StartAgent();
  EXPECT_THAT(WaitForLog("event=map_error"), HasSubstr(node_->paths().module_map()));
  WaitForLog("event=fabric_up");
  EXPECT_TRUE(AddPod("a", 2).admitted);
  const auto calls = node_->kubelet().calls().preferred();
  ASSERT_FALSE(calls.empty());
  EXPECT_THAT(calls.back().answer, IsEmpty());
}

class KataTest : public DeviceTest {
 protected:
  std::string CdiFile() const {
    return ReadFile(node_->paths().cdi() + "/nvidia.com-pgpu.yaml", 1 << 20).value_or("");
  }
};

TEST_F(KataTest, DeviceIdsAreCdiNamesAndNumbersOfTheVfioDevices) {
  MakeNode({.iommufd = true});
  StartAgent({{"consumer", "kata"}});
  WaitForLog("event=fabric_up");
  EXPECT_EQ(Resource(), "nvidia.com/pgpu");
  const PodStatus pod = AddPod("a", 2);
  ASSERT_TRUE(pod.admitted) << pod.message;
  const ContainerResult& container = pod.containers[0];
  EXPECT_THAT(container.envs, IsEmpty());
  EXPECT_THAT(container.cdi_devices, IsEmpty());
  std::vector<std::string> expected;
  std::set<int> modules;
  for (const std::string& id : container.devices.at("nvidia.com/pgpu")) {
    expected.push_back("/dev/vfio/devices/vfio" + id);
    EXPECT_THAT(CdiFile(), HasSubstr("\"" + id + "\"")) << "the CDI name is the device id";
    for (const FunctionState& function : node_->sysfs().functions()) {
      if (!function.vfio || std::to_string(*function.vfio) != id) continue;
      for (const BoardDevice& device : node_->board().devices) {
        if (device.address == function.spec.address) modules.insert(device.module);
      }
    }
  }
  std::vector<std::string> nodes;
  for (const DeviceNode& node : container.nodes) nodes.push_back(node.host_path);
  EXPECT_THAT(nodes, ::testing::UnorderedElementsAreArray(expected));
  EXPECT_TRUE(PartitionOf(modules).has_value());
}

TEST_F(KataTest, LegacyIdsAreGroupsAndNvswitchesAreOfferedToo) {
  MakeNode();
  for (const PciAddress& nvswitch : node_->board().nvswitches) {
    ASSERT_TRUE(node_->sysfs().SetDriver(nvswitch, "vfio-pci").ok());
  }
  StartAgent({{"consumer", "kata"}});
  ASSERT_TRUE(WaitForKubelet([this] { return node_->kubelet().Resources().size() == 2; }));
  EXPECT_TRUE(node_->kubelet().Resources().contains("nvidia.com/nvswitch"));
  ASSERT_TRUE(Waits(8));
  const PodStatus pod = AddPod("a", 1);
  ASSERT_TRUE(pod.admitted) << pod.message;
  const std::string id = pod.containers[0].devices.at("nvidia.com/pgpu").at(0);
  std::vector<std::string> nodes;
  for (const DeviceNode& node : pod.containers[0].nodes) nodes.push_back(node.host_path);
  EXPECT_THAT(nodes, ::testing::UnorderedElementsAre("/dev/vfio/vfio", "/dev/vfio/" + id));
}

TEST_F(KataTest, AfterARebootIdsNameTheDevicesThatHaveTheNumbersNow) {
  MakeNode();
  StartAgent({{"consumer", "kata"}});
  const std::string before = CdiFile();
  ASSERT_EQ(agent_->Stop(), 0);
  ASSERT_TRUE(node_->Reboot().ok());
  StartAgent({{"consumer", "kata"}});
  EXPECT_NE(CdiFile(), before);
  const PodStatus pod = AddPod("a", 1);
  ASSERT_TRUE(pod.admitted) << pod.message;
  const std::string id = pod.containers[0].devices.at("nvidia.com/pgpu").at(0);
  EXPECT_THAT(CdiFile(), HasSubstr("/dev/vfio/" + id));
}

}  // namespace
}  // namespace switchyard::sim
