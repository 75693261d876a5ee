// SPDX-License-Identifier: Apache-2.0
#include "kube/pod_resources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "kube/testing/plugin_fixture.h"

namespace switchyard::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kH100;
using ::testing::Pair;
using testing::Pci;
using ::testing::SizeIs;

// Waiting moves kubelet's clock, and nothing else does.
class PausesMoveKubeletsClock final : public Clock {
 public:
  explicit PausesMoveKubeletsClock(SimClock& kubelets) : kubelets_(kubelets) {}
  absl::Time Now() override { return real_.Now(); }
  absl::Duration Monotonic() override { return real_.Monotonic(); }

  int pauses = 0;
  bool moves = true;

 private:
  bool Wait(Wakeup&, absl::Duration timeout) override {
    ++pauses;
    if (moves) kubelets_.Advance(timeout);
    return false;
  }

  SimClock& kubelets_;
  RealClock real_;
};

class PodResourcesTest : public testing::PluginFixture {
 protected:
  ~PodResourcesTest() override { kubelet_.reset(); }  // it waits on our clock

  void Connect(sim::KubeletOptions kubelet = {}) {
    Begin(tenancy::FabricMode::kOff, std::move(kubelet));
    ASSERT_TRUE(kubelet_->Start().ok());
    ASSERT_TRUE(Settle());
    client_ = MakeClient(*catalogue_);
  }
  std::unique_ptr<PodResourcesClient> MakeClient(const Catalogue& catalogue) {
    return std::make_unique<PodResourcesClient>(
        PodResourcesClient::Options{folder_ + "/r/kubelet.sock", testing::kPatience, "N1.example"},
        catalogue, pausing_);
  }
  void AddPodWithoutDevices(const std::string& name) {
    ASSERT_TRUE(kubelet_->AddPod({"default", name, {{"main", false, false, {}}}, {}}).admitted);
  }
  // As kubelet's rate limit counts: `calls` of them at once.
  void UseUp(int calls) {
    for (int i = 0; i < calls; ++i) ASSERT_TRUE(client_->Read().ok());
  }
  Result<bool> StillHas(const std::string& pod, const std::string& address) {
    const PciAddress one = Pci(address);
    return client_->StillHas({"pod", pod}, {&one, 1});
  }

  SimClock kubelets_clock_;
  PausesMoveKubeletsClock pausing_{kubelets_clock_};
  std::unique_ptr<PodResourcesClient> client_;
};

TEST_F(PodResourcesTest, SaysWhoseADeviceIs) {
  tree_.AddGpu("0000:19:00.0", 11);
  Connect();
  EXPECT_THAT(client_->Read()->devices, IsEmpty());
  ASSERT_TRUE(kubelet_->AddPod(Pod("vm", kH100, 1)).admitted);
  ASSERT_TRUE(kubelet_->AddPod({"default", "none", {{"main", false, false, {}}}, {}}).admitted);
  EXPECT_THAT(client_->Read()->devices,
              ElementsAre(Pair(Pci("19:00.0"), tenancy::Owner{"pod", "default/vm"})));
  ASSERT_TRUE(kubelet_->RemovePod("default", "vm"));
  EXPECT_THAT(client_->Read()->devices, IsEmpty());
}

TEST_F(PodResourcesTest, MergesEntriesAndNamesAWholeGroup) {
  tree_.AddGpu("0000:19:00.0", 11);
  tree_.AddGpu("0000:1a:00.0", 11);
  tree_.AddGpu("0000:1b:00.0", 12);
  Connect();
  ASSERT_TRUE(kubelet_->AddPod(Pod("vm", kH100, 2)).admitted);
  EXPECT_THAT(client_->Read()->devices, SizeIs(3));
}

TEST_F(PodResourcesTest, LeavesOutWhatIsNotOurs) {
  tree_.AddGpu("0000:19:00.0", 11);
  Connect();
  ASSERT_TRUE(kubelet_->AddPod(Pod("vm", kH100, 1)).admitted);
  Catalogue other(*contract_, nullptr, events_);  // has no resources
  EXPECT_THAT(MakeClient(other)->Read()->devices, IsEmpty());
}

TEST_F(PodResourcesTest, FailsWithKubeletsCodeAndWorksAgainAfterItsRestart) {
  tree_.AddGpu("0000:19:00.0", 11);
  Connect();
  kubelet_->Stop();
  const auto down = client_->Read();
  EXPECT_TRUE(absl::IsUnavailable(down.status())) << down.status();
  EXPECT_THAT(std::string(down.status().message()), HasSubstr("/r/kubelet.sock"));
  ASSERT_TRUE(kubelet_->Start().ok());
  EXPECT_TRUE(client_->Read().ok());
}

TEST_F(PodResourcesTest, IsWholeOnceThisKubeletHasNamedAPod) {
  tree_.AddGpu("0000:19:00.0", 11);
  Connect();
  EXPECT_FALSE(client_->Read()->whole);
  AddPodWithoutDevices("proxy");
  EXPECT_TRUE(client_->Read()->whole);
  ASSERT_TRUE(kubelet_->RemovePod("default", "proxy"));
  EXPECT_TRUE(client_->Read()->whole) << "the last pod of a node may go";

  ASSERT_TRUE(kubelet_->Restart().ok());
  EXPECT_FALSE(client_->Read()->whole) << "another kubelet, that may not know its pods";
  AddPodWithoutDevices("proxy");
  EXPECT_TRUE(client_->Read()->whole);
}

TEST_F(PodResourcesTest, AStaticPodShowsNothing) {
  tree_.AddGpu("0000:19:00.0", 11);
  Connect();
  AddPodWithoutDevices("etcd-n1.example");
  EXPECT_FALSE(client_->Read()->whole);
  AddPodWithoutDevices("etcd-n2.example");
  EXPECT_TRUE(client_->Read()->whole);
}

TEST_F(PodResourcesTest, SaysWhetherAPodStillHasADevice) {
  tree_.AddGpu("0000:19:00.0", 11);
  tree_.AddGpu("0000:1a:00.0", 12);
  Connect();
  ASSERT_TRUE(kubelet_->AddPod(Pod("vm", kH100, 1)).admitted);
  const PciAddress its = client_->Read().value().devices.begin()->first;
  const std::string others = its == Pci("19:00.0") ? "1a:00.0" : "19:00.0";
  EXPECT_TRUE(StillHas("default/vm", its.ToString()).value());
  EXPECT_FALSE(StillHas("default/vm", others).value());
  EXPECT_FALSE(StillHas("default/other", its.ToString()).value());
  EXPECT_FALSE(StillHas("other/vm", its.ToString()).value());
  ASSERT_TRUE(kubelet_->RemovePod("default", "vm"));
  EXPECT_FALSE(StillHas("default/vm", its.ToString()).value());
}

TEST_F(PodResourcesTest, OneOfTheDevicesOrOfAGroupIsEnough) {
  tree_.AddGpu("0000:19:00.0", 11);
  tree_.AddGpu("0000:1a:00.0", 11);
  tree_.AddGpu("0000:1b:00.0", 12);
  Connect();
  ASSERT_TRUE(kubelet_->AddPod(Pod("vm", kH100, 2)).admitted);
  EXPECT_TRUE(StillHas("default/vm", "1a:00.0").value()) << "the group's other GPU";
  const std::vector<PciAddress> some = {Pci("3b:00.0"), Pci("1b:00.0")};
  EXPECT_TRUE(client_->StillHas({"pod", "default/vm"}, some).value());
}

TEST_F(PodResourcesTest, AskingRecalculatesNothing) {
  tree_.AddGpu("0000:19:00.0", 11);
  Connect();
  ASSERT_TRUE(kubelet_->AddPod(Pod("vm", kH100, 1)).admitted);
  ASSERT_TRUE(kubelet_->RemovePod("default", "vm"));
  (void)StillHas("default/vm", "19:00.0");
  EXPECT_TRUE(kubelet_->Resources().at(kH100).devices.at(0).in_use);
  EXPECT_EQ(kubelet_->calls().counts().pod_list, 0);
}

TEST_F(PodResourcesTest, AnInitContainersDevicesAreNotShown) {
  tree_.AddGpu("0000:19:00.0", 11);
  Connect();
  ASSERT_TRUE(
      kubelet_->AddPod({"default", "vm", {{"first", true, false, {{kH100, 1}}}}, {}}).admitted);
  EXPECT_FALSE(StillHas("default/vm", "19:00.0").value());
}

TEST_F(PodResourcesTest, WhatIsNotUnderstoodIsAnErrorAndNotANo) {
  tree_.AddGpu("0000:19:00.0", 11);
  Connect();
  ASSERT_TRUE(kubelet_->AddPod(Pod("vm", kH100, 1)).admitted);
  const PciAddress gpu = Pci("19:00.0");
  EXPECT_FALSE(client_->StillHas({"claim", "default/vm"}, {&gpu, 1}).ok());
  EXPECT_FALSE(client_->StillHas({"pod", "vm"}, {&gpu, 1}).ok());

  // Its devices are advertised under another name than when it got them.
  Catalogue renamed(*contract_, nullptr, events_);
  const auto other = MakeClient(renamed)->StillHas({"pod", "default/vm"}, {&gpu, 1});
  EXPECT_THAT(std::string(other.status().message()),
              HasSubstr(absl::StrCat(kH100, "=0000:19:00.0")));

  kubelet_->Stop();
  EXPECT_TRUE(absl::IsUnavailable(StillHas("default/vm", "19:00.0").status()));
  EXPECT_TRUE(absl::IsUnavailable(StillHas("default/other", "19:00.0").status()));
}

TEST_F(PodResourcesTest, ACallOverTheRateLimitIsRepeated) {
  tree_.AddGpu("0000:19:00.0", 11);
  sim::KubeletOptions options;
  options.clock = &kubelets_clock_;
  Connect(options);
  UseUp(10);
  EXPECT_TRUE(client_->Read().ok());
  EXPECT_FALSE(StillHas("default/none", "19:00.0").value());
  EXPECT_GT(kubelet_->calls().counts().rate_limited, 0);
}

TEST_F(PodResourcesTest, TheRateLimitIsGivenUpOn) {
  tree_.AddGpu("0000:19:00.0", 11);
  sim::KubeletOptions options;
  options.clock = &kubelets_clock_;
  Connect(options);
  UseUp(10);
  pausing_.moves = false;
  EXPECT_TRUE(absl::IsResourceExhausted(StillHas("default/none", "19:00.0").status()));
  EXPECT_EQ(pausing_.pauses, 5);
  EXPECT_TRUE(absl::IsResourceExhausted(client_->Read().status()));
}

}  // namespace
}  // namespace switchyard::kube
