// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>

#include "absl/synchronization/notification.h"
#include "k8s_podresources_v1.grpc.pb.h"
#include "sim/kubelet/kubelet_fixture_for_test.h"
#include "sim/kubelet/token_bucket.h"

namespace switchyard::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class PodResourcesTest : public KubeletFixture {
 protected:
  PodResourcesTest()
      : stub_(v1::PodResourcesLister::NewStub(grpc::CreateChannel(
            "unix:" + folder_ + "/pr/kubelet.sock", grpc::InsecureChannelCredentials()))) {}

  grpc::Status List(v1::ListPodResourcesResponse& response) {
    grpc::ClientContext context;
    return stub_->List(&context, {}, &response);
  }
  v1::ListPodResourcesResponse List() {
    v1::ListPodResourcesResponse response;
    const grpc::Status status = List(response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  grpc::Status Get(const std::string& name, v1::GetPodResourcesResponse& response) {
    grpc::ClientContext context;
    v1::GetPodResourcesRequest request;
    request.set_pod_name(name);
    request.set_pod_namespace("default");
    return stub_->Get(&context, request, &response);
  }

  std::unique_ptr<v1::PodResourcesLister::Stub> stub_;
};

TEST_F(PodResourcesTest, ListsRegularContainersAndSidecarsWithOneEntryADevice) {
  const auto plugin = MakeRegistered({"a", "b", "c"});
  plugin->Send({{"a", "Healthy", {1}}, {"b", "Healthy", {1}}, {"c", "Healthy", {1}}});
  ASSERT_TRUE(
      kubelet_->WaitFor([&] { return kubelet_->calls().counts().snapshots == 2; }, kPatience));
  PodSpec spec;
  spec.ns = "tenant";
  spec.name = "pod";
  spec.containers = {
      {.name = "init", .init = true, .resources = {{"v/gpu", 1}}},
      {.name = "main", .resources = {{"v/gpu", 2}}},
      {.name = "sidecar", .init = true, .restartable = true, .resources = {{"v/gpu", 1}}},
  };
  ASSERT_TRUE(kubelet_->AddPod(spec).admitted);
  spec = {.name = "without", .containers = {{.name = "main"}}};
  ASSERT_TRUE(kubelet_->AddPod(spec).admitted);

  const v1::ListPodResourcesResponse list = List();
  ASSERT_THAT(list.pod_resources(), SizeIs(2));
  EXPECT_EQ(list.pod_resources(0).name(), "without");
  const v1::PodResources& pod = list.pod_resources(1);
  EXPECT_EQ(pod.namespace_(), "tenant");
  ASSERT_THAT(pod.containers(), SizeIs(2));
  EXPECT_EQ(pod.containers(0).name(), "sidecar");
  const v1::ContainerResources& main = pod.containers(1);
  EXPECT_EQ(main.name(), "main");
  ASSERT_THAT(main.devices(), SizeIs(2));
  for (const v1::ContainerDevices& device : main.devices()) {
    EXPECT_EQ(device.resource_name(), "v/gpu");
    EXPECT_THAT(device.device_ids(), SizeIs(1));
    ASSERT_THAT(device.topology().nodes(), SizeIs(1));
    EXPECT_EQ(device.topology().nodes(0).id(), 1);
  }
}

TEST_F(PodResourcesTest, ListsActivePodsOnlyAndFreesTheDevicesOfTheOthers) {
  const auto plugin = MakeRegistered({"a"});
  ASSERT_TRUE(AddPod("ended", 1).admitted);
  ASSERT_FALSE(AddPod("failed", 1).admitted);
  ASSERT_TRUE(kubelet_->RemovePod("default", "ended"));
  EXPECT_TRUE(Gpu().devices.at(0).in_use);
  EXPECT_THAT(List().pod_resources(), IsEmpty());
  EXPECT_FALSE(Gpu().devices.at(0).in_use);
}

TEST_F(PodResourcesTest, GetFindsAnyPodAndFreesNothing) {
  const auto plugin = MakeRegistered({"a"});
  ASSERT_TRUE(AddPod("pod", 1).admitted);
  ASSERT_FALSE(AddPod("failed", 1).admitted);
  v1::GetPodResourcesResponse response;
  ASSERT_TRUE(Get("pod", response).ok());
  EXPECT_THAT(response.pod_resources().containers(0).devices(0).device_ids(), ElementsAre("a"));
  EXPECT_TRUE(Get("failed", response).ok());

  ASSERT_TRUE(kubelet_->RemovePod("default", "pod"));
  const grpc::Status status = Get("pod", response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNKNOWN);
  EXPECT_EQ(status.error_message(), "pod pod in namespace default not found");
  EXPECT_TRUE(Gpu().devices.at(0).in_use);
}

// A reader's List while a pod is being admitted, seen from outside: see device_manager_test.cpp for
// what it does to the record.
TEST_F(PodResourcesTest, APodUnderAdmissionIsListedWithoutDevices) {
  v1::ListPodResourcesResponse during;
  absl::Notification listed;
  const auto plugin = MakeRegistered({"a"}, {.allocate = [&](const auto&) {
                                       during = List();
                                       listed.Notify();
                                       return AllocateAnswer();
                                     }});
  ASSERT_TRUE(AddPod("pod", 1).admitted);
  listed.WaitForNotification();
  ASSERT_THAT(during.pod_resources(), SizeIs(1));
  EXPECT_THAT(during.pod_resources(0).containers(0).devices(), IsEmpty());
  EXPECT_THAT(List().pod_resources(0).containers(0).devices(), SizeIs(1));
}

TEST_F(PodResourcesTest, GetAllocatableResourcesNamesHealthyDevicesInUseOrNot) {
  const auto plugin = MakeRegistered({"a", "b", "c"});
  plugin->Send({{"a", "Healthy", {}}, {"b", "Unhealthy", {}}, {"c", "Healthy", {}}});
  ASSERT_TRUE(WaitAllocatable(2));
  ASSERT_TRUE(AddPod("pod", 2).admitted);
  grpc::ClientContext context;
  v1::AllocatableResourcesResponse response;
  ASSERT_TRUE(stub_->GetAllocatableResources(&context, {}, &response).ok());
  ASSERT_THAT(response.devices(), SizeIs(2));
  EXPECT_THAT(response.devices(0).device_ids(), ElementsAre("a"));
  EXPECT_THAT(response.devices(1).device_ids(), ElementsAre("c"));
  EXPECT_FALSE(response.devices(0).has_topology());
}

TEST_F(PodResourcesTest, CallsOverTheRateAreRejected) {
  v1::ListPodResourcesResponse response;
  v1::GetPodResourcesResponse pod;
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(List(response).ok());
  EXPECT_EQ(List(response).error_message(), "rejected by rate limit");
  EXPECT_EQ(Get("pod", pod).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  clock_.Advance(absl::Milliseconds(10));
  EXPECT_TRUE(List(response).ok());
  EXPECT_FALSE(List(response).ok());
  EXPECT_EQ(kubelet_->calls().counts().pod_list, 11);
  EXPECT_EQ(kubelet_->calls().counts().rate_limited, 3);
}

TEST(TokenBucket, FillsToTheBurstAndNotBeyond) {
  TokenBucket bucket(100, 2, absl::ZeroDuration());
  const absl::Duration later = absl::Hours(1);
  EXPECT_TRUE(bucket.Take(later));
  EXPECT_TRUE(bucket.Take(later));
  EXPECT_FALSE(bucket.Take(later));
  EXPECT_FALSE(bucket.Take(later + absl::Milliseconds(5)));
  EXPECT_TRUE(bucket.Take(later + absl::Milliseconds(10)));
}

}  // namespace
}  // namespace switchyard::sim
