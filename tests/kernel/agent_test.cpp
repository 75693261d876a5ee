// SPDX-License-Identifier: Apache-2.0
// The agent as it is shipped, beside a (simulated) kubelet, on the kernel's devices: what it
// offers, what it hands over, and what it notices.
#include <gmock/gmock.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "sim/kubelet/kubelet.h"
#include "tests/kernel/guest.h"

namespace switchyard::kernel_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr char kPlugins[] = "/var/lib/kubelet/device-plugins";
constexpr char kPodResources[] = "/var/lib/kubelet/pod-resources";

class KernelAgent : public Fixture {
 protected:
  void TearDown() override {
    if (HasFailure() && agent_ != nullptr)
      std::cerr << "the agent's log:\n" << agent_->Output() << "\n";
    agent_.reset();
    kubelet_.reset();
  }

  void StartAgent(const std::vector<std::string>& flags = {}) {
    kubelet_ = std::make_unique<sim::Kubelet>(sim::KubeletOptions{
        .device_plugins_folder = kPlugins, .pod_resources_folder = kPodResources});
    ASSERT_TRUE(kubelet_->Start().ok());
    auto agent = sim::Process::Start(
        std::vector<std::string>{"/lab/switchyard", "agent", "--paths-state", "/tmp/state",
                                 "--resources-names", "0x2335=H200,0x2684=RTX"} +
        flags);
    ASSERT_TRUE(agent.ok()) << agent.status();
    agent_ = *std::move(agent);
    ASSERT_TRUE(Waits(4));
    EXPECT_THAT(agent_->Output(), Not(HasSubstr("uevents_unavailable")));
  }

  // Until so many of the resource's devices are healthy.
  bool Waits(int healthy, const std::string& resource = "nvidia.com/H200") {
    return kubelet_->WaitFor(
        [&] {
          const auto all = kubelet_->Resources();
          const auto found = all.find(resource);
          return found != all.end() && found->second.connected &&
                 found->second.allocatable == healthy;
        },
        kPatience);
  }
  bool Logs(const std::string& text) { return agent_->WaitForLine(text, kPatience).has_value(); }

  sim::PodStatus AddPod(int gpus, const std::string& resource = "nvidia.com/H200") {
    sim::PodSpec spec;
    spec.name = absl::StrCat("pod-", ++pods_);
    spec.containers.push_back({"compute", false, false, {{resource, gpus}}});
    return kubelet_->AddPod(spec);
  }
  static std::vector<std::string> Nodes(const sim::PodStatus& pod) {
    std::vector<std::string> nodes;
    for (const sim::ContainerResult& container : pod.containers) {
      for (const sim::DeviceNode& node : container.nodes) nodes.push_back(node.host_path);
    }
    return nodes;
  }

  std::unique_ptr<sim::Kubelet> kubelet_;
  std::unique_ptr<sim::Process> agent_;
  int pods_ = 0;
};

TEST_F(KernelAgent, WhatAllocateHandsOverOpensByGroupAndByCdev) {
  StartAgent();
  const sim::PodStatus pod = AddPod(4);
  ASSERT_TRUE(pod.admitted) << pod.message;
  std::vector<std::string> expected = {"/dev/vfio/vfio", "/dev/iommu"};
  for (const std::string& gpu : gpus_) {
    expected.push_back(GroupNode(gpu));
    expected.push_back(CdevNode(gpu));
  }
  const std::vector<std::string> nodes = Nodes(pod);
  EXPECT_THAT(nodes, ::testing::UnorderedElementsAreArray(expected));
  ASSERT_THAT(pod.containers, SizeIs(1));
  const auto addresses = pod.containers[0].envs.find("PCI_RESOURCE_NVIDIA_COM_H200");
  ASSERT_NE(addresses, pod.containers[0].envs.end());
  for (const std::string& gpu : gpus_) {
    EXPECT_THAT(addresses->second, HasSubstr(gpu));
    EXPECT_THAT(TryToOpen(Legacy(gpu) + std::vector<std::string>{"ids"}).back(), "ids ok");
    EXPECT_THAT(TryToOpen(ByCdev(gpu) + std::vector<std::string>{"ids"}).back(), "ids ok");
  }
}

TEST_F(KernelAgent, WithoutIommufdOnlyTheGroupIsHandedOver) {
  ASSERT_EQ(::rename("/dev/iommu", "/dev/iommu.away"), 0);
  StartAgent();
  const sim::PodStatus pod = AddPod(1);
  ASSERT_EQ(::rename("/dev/iommu.away", "/dev/iommu"), 0);
  ASSERT_TRUE(pod.admitted) << pod.message;
  const std::string gpu = pod.containers[0].devices.at("nvidia.com/H200").at(0);
  EXPECT_THAT(Nodes(pod), UnorderedElementsAre("/dev/vfio/vfio", GroupNode(gpu)));
}

TEST_F(KernelAgent, KataGetsTheCdevOfItsDeviceAlone) {
  StartAgent({"--consumer", "kata", "--resources-aliases-gpu", "H200"});
  const sim::PodStatus pod = AddPod(1);
  ASSERT_TRUE(pod.admitted) << pod.message;
  const std::string id = pod.containers[0].devices.at("nvidia.com/H200").at(0);
  const std::string node = "/dev/vfio/devices/vfio" + id;
  EXPECT_THAT(Nodes(pod), ElementsAre(node));
  EXPECT_THAT(TryToOpen({"iommufd", "cdev=" + node, "bind", "ioas", "ids"}).back(), "ids ok");
  EXPECT_THAT(Read("/var/run/cdi/nvidia.com-H200.yaml"), HasSubstr(node));
}

TEST_F(KernelAgent, ADeviceThatLosesItsDriverIsUnhealthyUntilItIsBack) {
  StartAgent();
  ASSERT_EQ(Unbind(gpus_[0]), 0);
  EXPECT_TRUE(Waits(3));
  EXPECT_TRUE(Logs("event=device_unhealthy"));
  Bind(gpus_[0], "vfio-pci");
  EXPECT_TRUE(Waits(4));
  EXPECT_TRUE(Logs("event=device_healthy"));
  Bind(gpus_[0], "pci-stub");
  EXPECT_TRUE(Waits(3));
  Bind(gpus_[0], "vfio-pci");
  EXPECT_TRUE(Waits(4));
}

TEST_F(KernelAgent, ADeviceThatIsRemovedIsHealthyOnceItIsBackAndBound) {
  StartAgent();
  ASSERT_EQ(Write(SysfsFolder(gpus_[1]) + "/remove", "1"), 0);
  EXPECT_TRUE(Waits(3));
  ASSERT_EQ(Write("/sys/bus/pci/rescan", "1"), 0);
  EXPECT_TRUE(Logs("no driver")) << "it returns on no driver";
  Bind(gpus_[1], "vfio-pci");
  EXPECT_TRUE(Waits(4));
}

// Out of its slot, as far as the guest's firmware and kernel can tell, and another one in.
TEST_F(KernelAgent, AHotUnpluggedDeviceIsUnhealthyUntilOneIsPluggedIn) {
  StartAgent();
  const std::string gpu = gpus_[3];
  Events events;
  TellQemu("device_del gpu3");
  events.WaitFor({"remove@", gpu, "SUBSYSTEM=pci "});
  EXPECT_TRUE(Waits(3));
  EXPECT_FALSE(Exists(SysfsFolder(gpu)));
  // The slot is empty a second after the kernel has let the device go, and nothing in the guest
  // says when: QEMU refuses until then. It also refuses once it has done it.
  bool back = false;
  for (int i = 0; i < 45 && !back; ++i) {
    TellQemu("device_add lab-h200,id=gpu3,bus=rp3");
    back = events.Comes({"add@", gpu, "SUBSYSTEM=pci "}, absl::Seconds(2));
  }
  ASSERT_TRUE(back);
  // The kernel sends the event first and lets drivers probe after that: until then a write to
  // drivers_probe succeeds and does nothing.
  ASSERT_EQ(Write(SysfsFolder(gpu) + "/driver_override", "vfio-pci"), 0);
  for (int i = 0; i < 45 && Driver(gpu).empty(); ++i) {
    ASSERT_EQ(Write("/sys/bus/pci/drivers_probe", gpu), 0);
    (void)events.Comes({"bind@", gpu}, absl::Seconds(2));
  }
  EXPECT_TRUE(Waits(4));
}

// The kernel waits for the holder; nobody else can open the device from the moment it began to.
TEST_F(KernelAgent, ADeviceThatIsBeingTakenAwayFromItsHolderIsUnhealthy) {
  StartAgent();
  std::unique_ptr<sim::Process> holder = Hold(Legacy(gpus_[0]));
  ASSERT_NE(holder, nullptr);
  Writer unbind("/sys/bus/pci/drivers/vfio-pci/unbind", gpus_[0]);
  EXPECT_TRUE(Waits(3));
  EXPECT_TRUE(unbind.Sleeps());
  EXPECT_TRUE(Logs("being taken from vfio-pci"));
  holder.reset();
  EXPECT_EQ(unbind.Wait(), 0);
  Bind(gpus_[0], "vfio-pci");
  EXPECT_TRUE(Waits(4));
}

TEST_F(KernelAgent, ADeviceInUseStaysHealthy) {
  StartAgent();
  const auto holder = Hold(Legacy(gpus_[0]));
  ASSERT_NE(holder, nullptr);
  Bind(gpus_[1], "");  // something for the agent to look at
  EXPECT_TRUE(Waits(3));
}

TEST_F(KernelAgent, ACompanionOnAHostDriverMakesTheDeviceUnhealthy) {
  const auto [gpu, disk] = InOneGroup(kRtx, kDisk);
  Bind(disk, "");
  Bind(gpu, "vfio-pci");
  StartAgent();
  ASSERT_TRUE(Waits(1, "nvidia.com/RTX"));
  Bind(disk, "nvme");
  EXPECT_TRUE(Waits(0, "nvidia.com/RTX"));
  EXPECT_TRUE(Logs(absl::StrCat(disk, " of IOMMU group ", Group(gpu), " is on nvme")));
  Bind(disk, "pci-stub");
  EXPECT_TRUE(Waits(1, "nvidia.com/RTX"));
  const sim::PodStatus pod = AddPod(1, "nvidia.com/RTX");
  ASSERT_TRUE(pod.admitted) << pod.message;
  EXPECT_THAT(TryToOpen(Legacy(gpu)).back(), "device ok");
}

}  // namespace
}  // namespace switchyard::kernel_test
