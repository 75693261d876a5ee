// SPDX-License-Identifier: Apache-2.0
#include "kube/pod_resources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

class PodResourcesTest : public testing::PluginFixture {
 protected:
  void Connect() {
    Begin();
    ASSERT_TRUE(kubelet_->Start().ok());
    ASSERT_TRUE(Settle());
    client_ = std::make_unique<PodResourcesClient>(
        PodResourcesClient::Options{folder_ + "/r/kubelet.sock", testing::kPatience}, *catalogue_);
  }
  std::unique_ptr<PodResourcesClient> client_;
};

TEST_F(PodResourcesTest, SaysWhoseADeviceIs) {
  tree_.AddGpu("0000:19:00.0", 11);
  Connect();
  EXPECT_THAT(client_->Read().value(), IsEmpty());
  ASSERT_TRUE(kubelet_->AddPod(Pod("vm", kH100, 1)).admitted);
  ASSERT_TRUE(kubelet_->AddPod({"default", "none", {{"main", false, false, {}}}, {}}).admitted);
  EXPECT_THAT(client_->Read().value(),
              ElementsAre(Pair(Pci("19:00.0"), tenancy::Owner{"pod", "default/vm"})));
  ASSERT_TRUE(kubelet_->RemovePod("default", "vm"));
  EXPECT_THAT(client_->Read().value(), IsEmpty());
}

TEST_F(PodResourcesTest, MergesEntriesAndNamesAWholeGroup) {
  tree_.AddGpu("0000:19:00.0", 11);
  tree_.AddGpu("0000:1a:00.0", 11);
  tree_.AddGpu("0000:1b:00.0", 12);
  Connect();
  ASSERT_TRUE(kubelet_->AddPod(Pod("vm", kH100, 2)).admitted);
  EXPECT_THAT(client_->Read().value(), SizeIs(3));
}

TEST_F(PodResourcesTest, LeavesOutWhatIsNotOurs) {
  tree_.AddGpu("0000:19:00.0", 11);
  Connect();
  ASSERT_TRUE(kubelet_->AddPod(Pod("vm", kH100, 1)).admitted);
  Catalogue other(*contract_, nullptr, events_);  // has no resources
  PodResourcesClient client({folder_ + "/r/kubelet.sock", testing::kPatience}, other);
  EXPECT_THAT(client.Read().value(), IsEmpty());
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

}  // namespace
}  // namespace switchyard::kube
