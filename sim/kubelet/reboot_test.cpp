// SPDX-License-Identifier: Apache-2.0
// Containers' starts: PreStartContainer, restarts of containers, kubelet and the node, a lost
// checkpoint.
#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "absl/synchronization/notification.h"
#include "sim/kubelet/kubelet_fixture_for_test.h"

namespace switchyard::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class RebootTest : public KubeletFixture {
 protected:
  // A plugin that wants to be asked; `refusal` is what it says to PreStartContainer.
  std::unique_ptr<FakePlugin> MakeAsked(const std::vector<std::string>& ids) {
    return MakeRegistered(ids, {.allocate =
                                    [](const auto& devices) {
                                      return AllocateAnswer{.envs = {{"PCI", devices.front()}}};
                                    },
                                .pre_start_required = true,
                                .pre_start =
                                    [this](const auto&) {
                                      absl::MutexLock lock(&mutex_);
                                      return refusal_;
                                    }});
  }
  void Refuse(Status refusal) {
    absl::MutexLock lock(&mutex_);
    refusal_ = std::move(refusal);
  }
  ContainerResult Main(const std::string& pod = "pod") const {
    for (const PodReport& report : kubelet_->Pods()) {
      if (report.name == pod && !report.status.containers.empty())
        return report.status.containers.back();
    }
    return {.name = "none"};
  }
  std::int64_t PreStarts() const { return kubelet_->calls().counts().pre_start; }
  std::int64_t Allocates() const { return kubelet_->calls().counts().allocate; }

  absl::Mutex mutex_;
  Status refusal_;
};

TEST_F(RebootTest, AskedBeforeEachStartOfAContainer) {
  const auto plugin = MakeAsked({"a", "b"});
  ASSERT_TRUE(AddPod("pod", 2).admitted);
  EXPECT_EQ(PreStarts(), 1);
  EXPECT_THAT(kubelet_->calls().pre_start().at(0).ids, ::testing::UnorderedElementsAre("a", "b"));
  EXPECT_EQ(Main().state, ContainerState::kRunning);
  ASSERT_TRUE(kubelet_->RestartContainers("default", "pod").ok());
  EXPECT_EQ(PreStarts(), 2);
  EXPECT_EQ(Main().starts, 2);
  EXPECT_EQ(Allocates(), 1);
  EXPECT_TRUE(absl::IsNotFound(kubelet_->RestartContainers("default", "other").status()));
}

TEST_F(RebootTest, ARefusalLeavesTheContainerWaitingAndItIsTriedAgain) {
  const auto plugin = MakeAsked({"a"});
  Refuse(absl::UnavailableError("the partition is not active yet"));
  const PodStatus status = AddPod("pod", 1);
  EXPECT_TRUE(status.admitted) << "a container that can't start fails no pod";
  ASSERT_THAT(status.containers, SizeIs(1));
  EXPECT_EQ(status.containers[0].state, ContainerState::kWaiting);
  EXPECT_EQ(status.containers[0].waiting,
            "device plugin PreStartContainer rpc failed with err: rpc error: code = Unavailable "
            "desc = the partition is not active yet");
  kubelet_->RetryStarts();
  EXPECT_EQ(PreStarts(), 2);
  EXPECT_EQ(Main().state, ContainerState::kWaiting);
  Refuse(OkStatus());
  kubelet_->RetryStarts();
  EXPECT_EQ(Main().state, ContainerState::kRunning);
  EXPECT_THAT(Main().waiting, IsEmpty());
  kubelet_->RetryStarts();
  EXPECT_EQ(PreStarts(), 3) << "what runs is left alone";
}

TEST_F(RebootTest, KubeletTriesAgainByItself) {
  Make({.start_retry = absl::Milliseconds(5)}, /*real_time=*/true);
  const auto plugin = MakeAsked({"a"});
  Refuse(absl::UnavailableError("not yet"));
  ASSERT_TRUE(AddPod("pod", 1).admitted);
  ASSERT_TRUE(kubelet_->WaitFor([this] { return PreStarts() >= 3; }, kPatience));
  Refuse(OkStatus());
  EXPECT_TRUE(
      kubelet_->WaitFor([this] { return Main().state == ContainerState::kRunning; }, kPatience));
}

TEST_F(RebootTest, AnAnswerThatDoesNotComeInTimeIsARefusal) {
  Make({.pre_start_timeout = absl::Milliseconds(20)});
  absl::Notification over;
  const auto plugin =
      MakeRegistered({"a"}, {.pre_start_required = true, .pre_start = [&](const auto&) {
                               over.WaitForNotification();
                               return OkStatus();
                             }});
  const PodStatus status = AddPod("pod", 1);
  over.Notify();
  EXPECT_THAT(status.containers.at(0).waiting, HasSubstr("code = DeadlineExceeded"));
}

TEST_F(RebootTest, AMainContainerWaitsForARefusedInitContainer) {
  std::atomic<int> calls = 0;
  const auto plugin = MakeRegistered(
      {"a", "b"}, {.pre_start_required = true, .pre_start = [&](const auto&) {
                     return ++calls == 1 ? absl::UnavailableError("not yet") : OkStatus();
                   }});
  PodSpec spec{.name = "pod",
               .containers = {{.name = "init", .init = true, .resources = {{"v/gpu", 1}}},
                              {.name = "main", .resources = {{"v/gpu", 2}}}}};
  const PodStatus first = kubelet_->AddPod(spec);
  EXPECT_EQ(first.containers.at(0).state, ContainerState::kWaiting);
  EXPECT_EQ(first.containers.at(1).state, ContainerState::kWaiting);
  EXPECT_EQ(PreStarts(), 1);
  kubelet_->RetryStarts();
  EXPECT_EQ(kubelet_->Pods().at(0).status.containers.at(0).state, ContainerState::kExited);
  EXPECT_EQ(Main().state, ContainerState::kRunning);
  ASSERT_TRUE(kubelet_->RestartContainers("default", "pod").ok());
  EXPECT_EQ(PreStarts(), 4) << "an init container that has done its work is not run again";
}

TEST_F(RebootTest, AfterARebootAContainerStartsWithTheAnswerOfThen) {
  auto plugin = MakeAsked({"a"});
  ASSERT_TRUE(AddPod("pod", 1).admitted);
  ASSERT_TRUE(kubelet_->Reboot().ok());
  EXPECT_EQ(Main().state, ContainerState::kWaiting);
  plugin.reset();
  plugin = MakeAsked({"a"});
  kubelet_->RetryStarts();
  EXPECT_EQ(PreStarts(), 1) << "it waits for its admission";
  EXPECT_EQ(Main().state, ContainerState::kWaiting);
  const auto again = kubelet_->ReadmitPod("default", "pod");
  ASSERT_TRUE(again.ok() && again->admitted) << again.status();
  EXPECT_EQ(Allocates(), 1);
  EXPECT_EQ(PreStarts(), 2);
  EXPECT_EQ(Main().state, ContainerState::kRunning);
  EXPECT_EQ(Main().envs.at("PCI"), "a");
  EXPECT_THAT(Main().devices.at("v/gpu"), ElementsAre("a"));
}

TEST_F(RebootTest, AfterARebootAPodWhosePluginIsNotBackIsRejectedForGood) {
  auto plugin = MakeAsked({"a"});
  ASSERT_TRUE(AddPod("pod", 1).admitted);
  ASSERT_TRUE(kubelet_->Reboot().ok());
  const auto early = kubelet_->ReadmitPod("default", "pod");
  ASSERT_TRUE(early.ok());
  EXPECT_EQ(early->reason, "UnexpectedAdmissionError");
  EXPECT_THAT(early->message, HasSubstr("no healthy devices present"));
  plugin.reset();
  plugin = MakeAsked({"a"});
  EXPECT_TRUE(absl::IsNotFound(kubelet_->ReadmitPod("default", "pod").status()));
  EXPECT_EQ(PreStarts(), 1);
}

TEST_F(RebootTest, AfterARebootAPodWhoseDeviceIsUnhealthyIsRejectedForGood) {
  auto plugin = MakeAsked({"a"});
  ASSERT_TRUE(AddPod("pod", 1).admitted);
  ASSERT_TRUE(kubelet_->Reboot().ok());
  plugin.reset();
  plugin = MakeAsked({"a", "b"});
  plugin->Send({{"a", "Unhealthy", {}}, {"b", "Healthy", {}}});
  ASSERT_TRUE(WaitAllocatable(1));
  const auto again = kubelet_->ReadmitPod("default", "pod");
  ASSERT_TRUE(again.ok());
  EXPECT_THAT(again->message, HasSubstr("previously allocated devices are no longer healthy"));
}

TEST_F(RebootTest, ARestartOfKubeletAloneLeavesRunningContainersAlone) {
  auto plugin = MakeAsked({"a"});
  ASSERT_TRUE(AddPod("pod", 1).admitted);
  ASSERT_TRUE(kubelet_->Restart().ok());
  EXPECT_EQ(Main().state, ContainerState::kRunning);
  const auto again = kubelet_->ReadmitPod("default", "pod");
  ASSERT_TRUE(again.ok() && again->admitted) << "though its plugin is not back";
  EXPECT_EQ(Main().starts, 1);
  // Nor is it asked for a container that dies meanwhile.
  ASSERT_TRUE(kubelet_->RestartContainers("default", "pod").ok());
  EXPECT_EQ(Main().state, ContainerState::kRunning);
  EXPECT_EQ(PreStarts(), 1);
}

TEST_F(RebootTest, WithoutItsCheckpointKubeletStartsNoContainerOfAnAskedPluginAgain) {
  auto plugin = MakeAsked({"a", "b"});
  ASSERT_TRUE(AddPod("pod", 1).admitted);
  ASSERT_TRUE(kubelet_->LoseCheckpoint().ok());
  ASSERT_TRUE(kubelet_->Restart().ok());
  plugin.reset();
  plugin = MakeAsked({"a", "b"});
  EXPECT_EQ(Main().state, ContainerState::kRunning) << "the VM runs on";
  EXPECT_FALSE(Gpu().devices.at(0).in_use) << "and its GPU looks free";
  EXPECT_FALSE(Gpu().devices.at(1).in_use);

  ASSERT_TRUE(kubelet_->RestartContainers("default", "pod").ok());
  EXPECT_EQ(Main().state, ContainerState::kWaiting);
  EXPECT_THAT(Main().waiting, HasSubstr("no devices found allocated in local cache for pod"));
  EXPECT_EQ(PreStarts(), 1);
}

TEST_F(RebootTest, WithoutItsCheckpointKubeletAllocatesAnewWhereItNeedNotAsk) {
  auto plugin = MakeRegistered({"a", "b"});
  ASSERT_TRUE(AddPod("pod", 1).admitted);
  ASSERT_TRUE(kubelet_->LoseCheckpoint().ok());
  ASSERT_TRUE(kubelet_->Restart().ok());
  plugin.reset();
  plugin = MakeRegistered({"a", "b"});
  ASSERT_TRUE(kubelet_->RestartContainers("default", "pod").ok());
  EXPECT_EQ(Main().state, ContainerState::kRunning);
  EXPECT_EQ(Allocates(), 2);
}

TEST_F(RebootTest, ACheckpointLostAtARebootIsAFreshAllocate) {
  auto plugin = MakeAsked({"a"});
  ASSERT_TRUE(AddPod("pod", 1).admitted);
  kubelet_->Stop();
  ASSERT_TRUE(kubelet_->LoseCheckpoint().ok());
  ASSERT_TRUE(kubelet_->Reboot().ok());
  plugin.reset();
  plugin = MakeAsked({"a"});
  const auto again = kubelet_->ReadmitPod("default", "pod");
  ASSERT_TRUE(again.ok() && again->admitted);
  EXPECT_EQ(Allocates(), 2);
}

// kubelet takes a resource that it knows nothing of for somebody else's.
TEST_F(RebootTest, ACheckpointLostAtARebootStartsAContainerWithoutDevicesIfNoPluginIsBack) {
  const auto plugin = MakeAsked({"a"});
  ASSERT_TRUE(AddPod("pod", 1).admitted);
  kubelet_->Stop();
  ASSERT_TRUE(kubelet_->LoseCheckpoint().ok());
  ASSERT_TRUE(kubelet_->Reboot().ok());
  const auto again = kubelet_->ReadmitPod("default", "pod");
  ASSERT_TRUE(again.ok() && again->admitted);
  EXPECT_EQ(Main().state, ContainerState::kRunning);
  EXPECT_THAT(Main().devices, IsEmpty());
}

TEST_F(RebootTest, AnotherKubeletInTheFolderKnowsThePodsOfTheCheckpointByTheirUidsOnly) {
  auto plugin = MakeRegistered({"a", "b"});
  ASSERT_TRUE(AddPod("pod", 1).admitted);
  Make({});
  plugin.reset();
  plugin = MakeRegistered({"a", "b"});
  const PodStatus status = AddPod("new", 2);  // the first admission reclaims what is nobody's
  EXPECT_TRUE(status.admitted) << status.message;
  EXPECT_EQ(Allocates(), 1);
}

}  // namespace
}  // namespace switchyard::sim
