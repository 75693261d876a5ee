// SPDX-License-Identifier: Apache-2.0
// Registration, streams and sockets against the simulated kubelet.
#include "kube/device_plugins.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/unique_fd.h"
#include "kube/testing/plugin_fixture.h"

namespace switchyard::kube {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kH100;
using testing::kPatience;
using ::testing::Not;
using ::testing::SizeIs;

class DevicePluginsTest : public testing::PluginFixture {
 protected:
  DevicePluginsTest() {
    tree_.AddGpu("0000:19:00.0", 11, 0);
    tree_.AddGpu("0000:3b:00.0", 12, -1);
  }
};

// The same with a real clock and the plugins' own threads.
class RunningPluginsTest : public DevicePluginsTest {
 protected:
  Clock* clock() override { return &real_clock_; }
  bool Connected() {
    return kubelet_->WaitFor(
        [&] {
          const auto resources = kubelet_->Resources();
          const auto at = resources.find(kH100);
          return at != resources.end() && at->second.connected && at->second.allocatable == 2;
        },
        kPatience);
  }
};

TEST_F(DevicePluginsTest, RegistersAndSendsTheList) {
  Begin();
  ASSERT_TRUE(kubelet_->Start().ok());
  ASSERT_TRUE(Settle());
  const sim::ResourceReport report = kubelet_->Resources().at(kH100);
  ASSERT_THAT(report.devices, SizeIs(2));
  EXPECT_EQ(report.devices[0].id, "0000:19:00.0");
  EXPECT_TRUE(report.devices[0].healthy);
  EXPECT_THAT(report.devices[0].numa_nodes, ElementsAre(0));
  EXPECT_THAT(report.devices[1].numa_nodes, IsEmpty()) << "unknown node: no topology, never -1";
  EXPECT_EQ(kubelet_->calls().counts().registers, 1);
  EXPECT_THAT(EventNames(), Contains("registered"));
}

TEST_F(DevicePluginsTest, SocketIsRootsOnly) {
  Begin();
  ASSERT_TRUE(kubelet_->Start().ok());
  ASSERT_TRUE(Settle());
  struct stat found{};
  ASSERT_EQ(::stat((folder_ + "/p/" + Socket()).c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600u);
}

TEST_F(DevicePluginsTest, ServesBeforeKubeletIsThereAndThenRegisters) {
  Begin();
  std::filesystem::create_directories(folder_ + "/p");
  EXPECT_GT(plugins_->Step(), absl::ZeroDuration());
  EXPECT_FALSE(Streaming());
  EXPECT_THAT(plugins_->Status().at(0).problem, HasSubstr("kubelet's socket is not there"));
  EXPECT_NE(Socket(), "");
  ASSERT_TRUE(kubelet_->Start().ok());  // removes our socket, as kubelet does
  EXPECT_TRUE(Settle());
}

TEST_F(DevicePluginsTest, SaysThatTheFolderIsMissing) {
  Begin();
  (void)plugins_->Step();
  EXPECT_THAT(plugins_->Status().at(0).problem, HasSubstr("folder of device plugins"));
  EXPECT_THAT(EventNames(), Contains("listen_failed"));
  (void)plugins_->Step();
  EXPECT_THAT(EventNames(), Not(Contains("listen_failed"))) << "once";
  std::filesystem::create_directories(folder_ + "/p");
  sim_clock_.Advance(absl::Seconds(1));
  ASSERT_TRUE(kubelet_->Start().ok());
  EXPECT_TRUE(Settle());
}

TEST_F(DevicePluginsTest, RetriesARefusedRegister) {
  Begin();
  ASSERT_TRUE(kubelet_->Start().ok());
  kubelet_->FailRegisters(2);
  EXPECT_TRUE(StepUntil([&] { return kubelet_->calls().counts().registers == 1; }));
  EXPECT_THAT(EventNames(), Contains("register_failed"));
  const absl::Duration wait = plugins_->Step();
  EXPECT_EQ(wait, absl::Milliseconds(200));
  EXPECT_EQ(kubelet_->calls().counts().registers, 1) << "not before the wait is over";
  sim_clock_.Advance(wait);
  (void)plugins_->Step();
  EXPECT_EQ(kubelet_->calls().counts().registers, 2);
  sim_clock_.Advance(absl::Milliseconds(400));
  EXPECT_TRUE(Settle());
  EXPECT_EQ(kubelet_->calls().counts().registers, 3);
}

TEST_F(DevicePluginsTest, RegistersAgainWhenTheStreamNeverComes) {
  Begin();
  ASSERT_TRUE(kubelet_->Start().ok());
  kubelet_->WithholdStreams(1);
  ASSERT_EQ(plugins_->Step(), absl::ZeroDuration()) << "registered";
  EXPECT_EQ(plugins_->Step(), absl::Seconds(5));
  EXPECT_FALSE(Streaming());
  const std::string first = Socket();
  sim_clock_.Advance(absl::Seconds(5));
  const absl::Duration wait = plugins_->Step();
  EXPECT_THAT(EventNames(), Contains("stream_missing"));
  sim_clock_.Advance(wait);
  EXPECT_TRUE(Settle());
  EXPECT_EQ(kubelet_->calls().counts().registers, 2);
  EXPECT_NE(Socket(), first) << "kubelet 1.37 refuses a name that it is connected to";
}

TEST_F(DevicePluginsTest, KubeletsRestartMeansANewSocketAndRegistration) {
  Begin();
  ASSERT_TRUE(kubelet_->Start().ok());
  ASSERT_TRUE(Settle());
  const std::string first = Socket();
  ASSERT_TRUE(kubelet_->Restart().ok());
  ASSERT_TRUE(StepUntil([&] { return Streaming() && Socket() != first; }));
  EXPECT_TRUE(Settle());
  EXPECT_EQ(kubelet_->Resources().at(kH100).allocatable, 2);
}

TEST_F(DevicePluginsTest, RestartOfAKubeletThatTellsPluginsByNameOnly) {
  sim::KubeletOptions old;
  old.plugins_by_name_only = true;
  Begin(tenancy::FabricMode::kOff, old);
  ASSERT_TRUE(kubelet_->Start().ok());
  ASSERT_TRUE(Settle());
  const std::string first = Socket();
  std::filesystem::remove(folder_ + "/p/" + first);
  // The old stream's end may take the new plugin down, once: it registers again.
  EXPECT_TRUE(StepUntil([&] {
    sim_clock_.Advance(absl::Seconds(1));
    return Socket() != first && Streaming() && kubelet_->Resources().at(kH100).allocatable == 2;
  }));
}

TEST_F(DevicePluginsTest, ARemovedSocketIsServedAnew) {
  Begin();
  ASSERT_TRUE(kubelet_->Start().ok());
  ASSERT_TRUE(Settle());
  const std::string first = Socket();
  std::filesystem::remove(folder_ + "/p/" + first);
  ASSERT_TRUE(StepUntil([&] { return Socket() != first && Streaming(); }));
  EXPECT_TRUE(Settle());
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/p/" + first));
}

TEST_F(DevicePluginsTest, HealthGoesToKubeletAndBack) {
  Begin();
  ASSERT_TRUE(kubelet_->Start().ok());
  ASSERT_TRUE(Settle());
  tree_.SetDriver("0000:19:00.0", "nvidia");
  Scan();
  EXPECT_TRUE(kubelet_->WaitFor([&] { return kubelet_->Resources().at(kH100).allocatable == 1; },
                                kPatience));
  EXPECT_EQ(kubelet_->Resources().at(kH100).capacity, 2);
  tree_.SetDriver("0000:19:00.0", "vfio-pci");
  Scan();
  EXPECT_TRUE(kubelet_->WaitFor([&] { return kubelet_->Resources().at(kH100).allocatable == 2; },
                                kPatience));
}

TEST_F(DevicePluginsTest, AnUnchangedListIsNotSentAgain) {
  Begin();
  ASSERT_TRUE(kubelet_->Start().ok());
  ASSERT_TRUE(Settle());
  // Until the first list has arrived, a change goes into it.
  ASSERT_TRUE(kubelet_->WaitFor([&] { return kubelet_->Resources().at(kH100).allocatable == 2; },
                                kPatience));
  for (int i = 0; i < 5; ++i) Scan();
  tree_.SetDriver("0000:19:00.0", std::nullopt);
  Scan();  // this one is sent: whatever came before it has arrived
  // A list is counted right after it shows.
  ASSERT_TRUE(kubelet_->WaitFor(
      [&] {
        return kubelet_->Resources().at(kH100).allocatable == 1 &&
               kubelet_->calls().counts().snapshots >= 2;
      },
      kPatience));
  EXPECT_EQ(kubelet_->calls().counts().snapshots, 2);
}

TEST_F(DevicePluginsTest, ResourcesComeAndGo) {
  Begin();
  ASSERT_TRUE(kubelet_->Start().ok());
  ASSERT_TRUE(Settle());
  const std::string first = Socket();
  tree_.AddFunction({.address = "0000:5d:00.0", .device = 0x20b1, .group = 13});
  Scan();
  ASSERT_TRUE(Settle());
  EXPECT_EQ(kubelet_->Resources().at("nvidia.com/GA100_A100_PCIE_40GB").allocatable, 1);
  plugins_->Publish(std::make_shared<const Offer>());
  (void)plugins_->Step();
  EXPECT_THAT(plugins_->Status(), IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/p/" + first));
}

TEST_F(RunningPluginsTest, NoticesKubeletsRestartByItself) {
  Begin();
  plugins_->Start();
  ASSERT_TRUE(kubelet_->Start().ok());
  ASSERT_TRUE(Connected());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(kubelet_->Restart().ok());
    ASSERT_TRUE(Connected());
  }
}

TEST_F(RunningPluginsTest, RemovesTheSocketsOfAFormerRun) {
  Begin();
  std::filesystem::create_directories(folder_ + "/p");
  const std::string left = folder_ + "/p/switchyard-old-01234567.sock";
  {
    const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    left.copy(address.sun_path, sizeof(address.sun_path) - 1);
    ASSERT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  plugins_->Start();
  EXPECT_FALSE(std::filesystem::exists(left));
}

TEST_F(RunningPluginsTest, StopEndsARegisterInFlight) {
  sim::KubeletOptions options;
  options.dial_timeout = absl::Milliseconds(1);  // it will find nobody to dial
  plugin_options_.register_timeout = absl::Hours(1);
  Begin(tenancy::FabricMode::kOff, options);
  ASSERT_TRUE(kubelet_->Start().ok());
  kubelet_->HoldDialBack(true);
  plugins_->Start();
  ASSERT_TRUE(
      kubelet_->WaitFor([&] { return kubelet_->calls().counts().registers == 1; }, kPatience));
  events_.Take();
  plugins_->Stop();
  EXPECT_THAT(EventNames(), IsEmpty()) << "stopping is no failure";
  kubelet_->HoldDialBack(false);
}

TEST_F(DevicePluginsTest, ABlockedDeviceIsUnhealthyAtKubelet) {
  Begin();
  ASSERT_TRUE(kubelet_->Start().ok());
  ASSERT_TRUE(Settle());
  const pci::Inventory inventory = pci::Scan(tree_.root()).value();
  const auto allocatable = [&](int count) {
    return kubelet_->WaitFor([&] { return kubelet_->Resources().at(kH100).allocatable == count; },
                             kPatience);
  };
  plugins_->Publish(catalogue_->Update(
      inventory, {{testing::Pci("19:00.0"), "Fabric Manager is down; it ends when it is back"}}));
  ASSERT_TRUE(allocatable(1));
  EXPECT_EQ(kubelet_->Resources().at(kH100).capacity, 2) << "capacity stays physical";
  EXPECT_FALSE(kubelet_->Resources().at(kH100).devices.at(0).healthy);
  plugins_->Publish(catalogue_->Update(inventory));
  EXPECT_TRUE(allocatable(2));
}

}  // namespace
}  // namespace switchyard::kube
