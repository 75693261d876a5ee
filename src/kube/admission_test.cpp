// SPDX-License-Identifier: Apache-2.0
// GetPreferredAllocation and Allocate, through the simulated kubelet and through a client that says
// what kubelet would not.
#include "kube/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "kube/testing/plugin_fixture.h"

namespace switchyard::kube {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kH100;
using testing::kPatience;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr char kEnvironment[] = "PCI_RESOURCE_NVIDIA_COM_GH100_H100_SXM5_80GB";

class AdmissionTest : public testing::PluginFixture {
 protected:
  // Module N of the board is the GPU at 0000:(0x10+N):00.0 in group N.
  AdmissionTest() {
    for (int module = 1; module <= 8; ++module) tree_.AddGpu(Address(module), module);
  }
  static std::string Address(int module) {
    return absl::StrFormat("0000:%02x:00.0", 0x10 + module);
  }

  void BeginAdvise() {
    std::string map = "{";
    for (int module = 1; module <= 8; ++module) {
      absl::StrAppend(&map, module > 1 ? "," : "", "\"", Address(module), "\":", module);
    }
    ASSERT_TRUE(WriteFileAtomically(folder_ + "/map.json", map + "}").ok());
    reader_.list = tenancy::testing::H100();
    Begin(tenancy::FabricMode::kAdvise);
    tenancies_->RefreshFabric();
  }
  void Connect() {
    ASSERT_TRUE(kubelet_->Start().ok());
    ASSERT_TRUE(Settle());
    stub_ = Dial();
  }

  grpc::Status Allocate(const std::vector<std::vector<std::string>>& containers) {
    v1beta1::AllocateRequest request;
    for (const auto& ids : containers) {
      auto& container = *request.add_container_requests();
      for (const std::string& id : ids) container.add_devices_ids(id);
    }
    grpc::ClientContext context;
    allocated_.Clear();
    return stub_->Allocate(&context, request, &allocated_);
  }
  std::vector<std::string> Prefer(const std::vector<std::string>& available,
                                  const std::vector<std::string>& must_include, int size) {
    v1beta1::PreferredAllocationRequest request;
    auto& container = *request.add_container_requests();
    for (const std::string& id : available) container.add_available_deviceids(id);
    for (const std::string& id : must_include) container.add_must_include_deviceids(id);
    container.set_allocation_size(size);
    v1beta1::PreferredAllocationResponse response;
    grpc::ClientContext context;
    const grpc::Status status = stub_->GetPreferredAllocation(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.container_responses_size(), 1);
    const auto& ids = response.container_responses(0).deviceids();
    return {ids.begin(), ids.end()};
  }
  [[nodiscard]] std::vector<std::string> Nodes(int container) const {
    std::vector<std::string> nodes;
    for (const auto& device : allocated_.container_responses(container).devices()) {
      EXPECT_EQ(device.container_path(), device.host_path());
      EXPECT_EQ(device.permissions(), "mrw");
      nodes.push_back(device.host_path());
    }
    return nodes;
  }

  std::unique_ptr<v1beta1::DevicePlugin::Stub> stub_;
  v1beta1::AllocateResponse allocated_;
};

TEST_F(AdmissionTest, APodGetsOnePartition) {
  BeginAdvise();
  Connect();
  const sim::PodStatus pod = kubelet_->AddPod(Pod("a", kH100, 2));
  ASSERT_TRUE(pod.admitted) << pod.message;
  // The pairs of the H100 board.
  EXPECT_THAT(pod.containers.at(0).devices.at(kH100), ElementsAre(Address(1), Address(3)));
  EXPECT_THAT(pod.containers[0].nodes, SizeIs(3));
  EXPECT_TRUE(StepUntil([&] { return after_allocate_ == 1; }));
}

TEST_F(AdmissionTest, AddressesStandInRequestOrder) {
  Begin();
  Connect();
  ASSERT_TRUE(Allocate({{Address(5), Address(2)}}).ok());
  EXPECT_EQ(allocated_.container_responses(0).envs().at(kEnvironment),
            Address(5) + "," + Address(2));
  EXPECT_THAT(Nodes(0), ElementsAre("/dev/vfio/vfio", "/dev/vfio/5", "/dev/vfio/2"));
}

TEST_F(AdmissionTest, EachContainerGetsItsOwn) {
  Begin();
  Connect();
  ASSERT_TRUE(Allocate({{Address(1)}, {Address(2), Address(3)}}).ok());
  ASSERT_EQ(allocated_.container_responses_size(), 2);
  EXPECT_EQ(allocated_.container_responses(0).envs().at(kEnvironment), Address(1));
  EXPECT_EQ(allocated_.container_responses(1).envs().at(kEnvironment),
            Address(2) + "," + Address(3));
  EXPECT_THAT(Nodes(1), ElementsAre("/dev/vfio/vfio", "/dev/vfio/2", "/dev/vfio/3"));
}

TEST_F(AdmissionTest, AFailingContainerTakesBackTheOthers) {
  BeginAdvise();
  Connect();
  tree_.SetDriver(Address(2), "nvidia");
  const grpc::Status status = Allocate({{Address(1)}, {Address(2)}});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("container 1"));
  EXPECT_THAT(status.error_message(), HasSubstr("vfio"));
  EXPECT_TRUE(tenancies_->View().busy.empty());
  EXPECT_THAT(EventNames(), Contains("allocate_failed"));
  EXPECT_EQ(after_allocate_, 0);
  ASSERT_TRUE(Allocate({{Address(1)}}).ok());
  EXPECT_EQ(tenancies_->View().busy, fabric::ModuleSet{1});
}

TEST_F(AdmissionTest, RefusesDuplicatesUnknownAndNothing) {
  Begin();
  Connect();
  const grpc::Status twice = Allocate({{Address(1), Address(1)}});
  EXPECT_EQ(twice.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(twice.error_message(), HasSubstr("twice"));
  EXPECT_EQ(Allocate({{Address(1)}, {Address(1)}}).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  const grpc::Status unknown = Allocate({{"0000:ff:00.0"}});
  EXPECT_EQ(unknown.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(unknown.error_message(), HasSubstr("0000:ff:00.0"));
  EXPECT_EQ(Allocate({{}}).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Allocate({}).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(AdmissionTest, EachAllocateIsMeasuredByOutcome) {
  Begin();
  Connect();
  (void)events_.TakeTimings();
  EXPECT_TRUE(Allocate({{Address(1)}}).ok());
  EXPECT_FALSE(Allocate({{"0000:99:00.0"}}).ok());
  std::vector<std::string> outcomes;
  for (const Timing& timing : events_.TakeTimings()) {
    EXPECT_EQ(timing.name, "allocate");
    for (const auto& [key, value] : timing.labels)
      outcomes.push_back(absl::StrCat(key, "=", value));
  }
  EXPECT_THAT(outcomes, ElementsAre("outcome=granted", "outcome=refused"));
}

TEST_F(AdmissionTest, ADeviceThatIsGoneFailsThePodWithTheReason) {
  Begin();
  Connect();
  tree_.Remove(Address(1));  // not scanned yet
  const grpc::Status status = Allocate({{Address(1)}});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr(Address(1)));
}

TEST_F(AdmissionTest, PreferenceIsAPartition) {
  BeginAdvise();
  Connect();
  EXPECT_THAT(Prefer({Address(4), Address(3), Address(2)}, {}, 2),
              UnorderedElementsAre(Address(2), Address(4)));
  EXPECT_THAT(Prefer({Address(4), Address(3), Address(2), Address(1)}, {Address(3)}, 2),
              UnorderedElementsAre(Address(1), Address(3)));
}

TEST_F(AdmissionTest, PreferenceIsNeverAnError) {
  Begin(tenancy::FabricMode::kAdvise);  // FM is down, no table
  tenancies_->RefreshFabric();
  Connect();
  events_.Take();
  EXPECT_THAT(Prefer({Address(1), Address(2)}, {}, 2), IsEmpty());
  EXPECT_THAT(Prefer({Address(1), "what"}, {}, 1), IsEmpty());
  EXPECT_THAT(Prefer({Address(1)}, {"0000:ff:00.0"}, 1), IsEmpty());
  EXPECT_THAT(Prefer({}, {}, 0), IsEmpty());
  EXPECT_THAT(Prefer({}, {}, -7), IsEmpty());
  EXPECT_THAT(EventNames(),
              ElementsAre("preferred", "preferred", "preferred", "preferred", "preferred"));
}

TEST_F(AdmissionTest, AnUnknownAvailableIdSpoilsNothing) {
  BeginAdvise();
  Connect();
  EXPECT_THAT(Prefer({Address(1), "what", Address(3)}, {}, 2),
              ::testing::UnorderedElementsAre(Address(1), Address(3)));
}

TEST_F(AdmissionTest, NoPartitionFitsIsNoPreference) {
  BeginAdvise();
  Connect();
  EXPECT_THAT(Prefer({Address(1), Address(2), Address(5)}, {}, 2), IsEmpty());
  EXPECT_THAT(Prefer({Address(1), Address(2), Address(3)}, {}, 3), IsEmpty());
}

TEST_F(AdmissionTest, OneEventADecision) {
  BeginAdvise();
  Connect();
  events_.Take();
  Prefer({Address(1), Address(3)}, {Address(1)}, 2);
  const std::vector<Event> events = events_.Take();
  ASSERT_THAT(events, SizeIs(1));
  const auto field = [&](absl::string_view name) {
    for (const auto& [key, value] : events[0].fields) {
      if (key == name) return value;
    }
    return std::string("absent");
  };
  EXPECT_EQ(field("resource"), kH100);
  EXPECT_EQ(field("container"), "0");
  EXPECT_EQ(field("available"), Address(1) + "," + Address(3));
  EXPECT_EQ(field("must_include"), Address(1));
  EXPECT_EQ(field("size"), "2");
  EXPECT_EQ(field("partition"), "3");
  EXPECT_EQ(field("chosen"), Address(1) + "," + Address(3));
  EXPECT_NE(events[0].message, "");
}

TEST_F(AdmissionTest, NoPreStart) {
  Begin();
  Connect();
  grpc::ClientContext context;
  v1beta1::PreStartContainerResponse response;
  EXPECT_EQ(stub_->PreStartContainer(&context, v1beta1::PreStartContainerRequest(), &response)
                .error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(AdmissionTest, TwoGpusOfAGroupGoTogether) {
  tree_.SetGroup(Address(2), 1);  // with module 1
  Begin();
  Connect();
  EXPECT_EQ(kubelet_->Resources().at(kH100).capacity, 7);
  ASSERT_TRUE(Allocate({{Address(1)}}).ok());
  EXPECT_EQ(allocated_.container_responses(0).envs().at(kEnvironment), Address(1));
  EXPECT_THAT(Nodes(0), ElementsAre("/dev/vfio/vfio", "/dev/vfio/1"));
  EXPECT_EQ(Allocate({{Address(2)}}).error_code(), grpc::StatusCode::NOT_FOUND);
}

// Kata's device ids are the kernel's numbers.
class KataAdmissionTest : public AdmissionTest {
 protected:
  KataAdmissionTest() {
    UseKata();
    tree_.AddIommufd();
    for (int module = 1; module <= 8; ++module) tree_.SetVfio(Address(module), module - 1);
  }
};

TEST_F(KataAdmissionTest, APodGetsItsCdevOnly) {
  BeginAdvise();
  Connect();
  ASSERT_TRUE(Allocate({{"2", "0"}}).ok());
  EXPECT_THAT(Nodes(0), ElementsAre("/dev/vfio/devices/vfio2", "/dev/vfio/devices/vfio0"));
  EXPECT_THAT(allocated_.container_responses(0).envs(), IsEmpty());
  EXPECT_THAT(allocated_.container_responses(0).cdi_devices(), IsEmpty());
}

TEST_F(KataAdmissionTest, PreferenceSpeaksNumbersToo) {
  BeginAdvise();
  Connect();
  EXPECT_THAT(Prefer({"7", "3", "1", "5"}, {}, 2), UnorderedElementsAre("1", "3"));
}

TEST_F(KataAdmissionTest, ANumberThatMovedIsRefusedUntilTheNextScan) {
  BeginAdvise();
  Connect();
  tree_.SetVfio(Address(1), 4);  // the kernel swapped two
  tree_.SetVfio(Address(5), 0);
  const grpc::Status status = Allocate({{"0"}});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr(Address(1)));
  EXPECT_TRUE(tenancies_->View().busy.empty());
  Scan();
  ASSERT_TRUE(Allocate({{"0"}}).ok());
  EXPECT_EQ(tenancies_->View().busy, fabric::ModuleSet{5});
}

class PreStartTest : public AdmissionTest {
 protected:
  // The contract of enforce; `core` is what answers.
  void BeginEnforce(tenancy::FabricMode core = tenancy::FabricMode::kOff) {
    UseKubevirt(tenancy::FabricMode::kEnforce);
    Begin(core);
    Connect();
  }
  grpc::Status PreStart(const std::vector<std::string>& ids) {
    v1beta1::PreStartContainerRequest request;
    for (const std::string& id : ids) request.add_devices_ids(id);
    grpc::ClientContext context;
    v1beta1::PreStartContainerResponse response;
    return stub_->PreStartContainer(&context, request, &response);
  }
  bool Required() {
    grpc::ClientContext context;
    v1beta1::DevicePluginOptions options;
    EXPECT_TRUE(stub_->GetDevicePluginOptions(&context, {}, &options).ok());
    return options.pre_start_required();
  }
};

TEST_F(PreStartTest, IsAskedForInEnforceOnly) {
  BeginEnforce();
  EXPECT_TRUE(Required());
}

TEST_F(PreStartTest, IsNotAskedForInAdvise) {
  BeginAdvise();
  Connect();
  EXPECT_FALSE(Required());
  EXPECT_EQ(PreStart({Address(1)}).error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(PreStartTest, KubeletAsksBeforeTheContainerStarts) {
  BeginEnforce();
  const sim::PodStatus status = kubelet_->AddPod(Pod("vm", kH100, 1));
  ASSERT_TRUE(status.admitted) << status.message;
  EXPECT_EQ(kubelet_->calls().counts().pre_start, 1);
  EXPECT_EQ(status.containers.at(0).state, sim::ContainerState::kRunning)
      << status.containers.at(0).waiting;
  EXPECT_THAT(EventNames(), Contains("pre_start"));
}

TEST_F(PreStartTest, TheCoresRefusalIsTheContainersStatus) {
  BeginEnforce(tenancy::FabricMode::kEnforce);  // which has no Fabric Manager here
  EventNames();
  const grpc::Status status = PreStart({Address(1)});
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.error_message(), HasSubstr(kH100));
  const auto events = events_.Take();
  const auto failed = std::find_if(events.begin(), events.end(),
                                   [](const Event& e) { return e.name == "pre_start_failed"; });
  ASSERT_NE(failed, events.end());
  EXPECT_THAT(status.error_message(), HasSubstr(failed->message));
}

TEST_F(PreStartTest, AnIdOfNoDeviceIsRefusedAndSaysWhatToDo) {
  BeginEnforce();
  EventNames();
  const grpc::Status status = PreStart({Address(1), "0000:99:00.0"});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("0000:99:00.0"));
  EXPECT_THAT(status.error_message(), HasSubstr("delete the pod"));
  EXPECT_THAT(EventNames(), ElementsAre("pre_start_failed"));
  EXPECT_EQ(PreStart({}).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

}  // namespace
}  // namespace switchyard::kube
