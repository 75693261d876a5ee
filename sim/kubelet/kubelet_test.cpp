// SPDX-License-Identifier: Apache-2.0
#include "sim/kubelet/kubelet.h"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <fstream>
#include <thread>

#include "absl/synchronization/notification.h"
#include "base/unique_fd.h"
#include "sim/kubelet/kubelet_fixture_for_test.h"

namespace switchyard::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class KubeletTest : public KubeletFixture {};

TEST_F(KubeletTest, DialsBackInsideRegisterWithTheAuthorityLocalhost) {
  const auto plugin = MakePlugin("p.sock");
  ASSERT_TRUE(plugin->Register("v/gpu").ok());
  EXPECT_EQ(kubelet_->calls().counts().options, 1);  // before Register came back
  EXPECT_EQ(plugin->authority(), "localhost");
  EXPECT_TRUE(Gpu().connected);
}

TEST_F(KubeletTest, RegisterDoesNotWaitForADeviceList) {
  const auto plugin = MakePlugin("p.sock");
  ASSERT_TRUE(plugin->Register("v/gpu").ok());
  ASSERT_TRUE(
      kubelet_->WaitFor([&] { return kubelet_->calls().counts().streams_opened == 1; }, kPatience));
  EXPECT_EQ(AddPod("pod", 1).reason, "OutOfv/gpu");
  plugin->Send(HealthyDevices({"a", "b"}));
  ASSERT_TRUE(WaitAllocatable(2));
  EXPECT_EQ(kubelet_->calls().counts().streams_opened, 1);
}

TEST_F(KubeletTest, RefusesAnotherVersionAndABadName) {
  const auto plugin = MakePlugin("p.sock");
  const Status version = plugin->Register("v/gpu", "v1beta2");
  EXPECT_EQ(version.code(), absl::StatusCode::kUnknown);
  EXPECT_THAT(version.message(), HasSubstr("v1beta2"));
  const Status name = plugin->Register("gpu");
  EXPECT_EQ(name.code(), absl::StatusCode::kUnknown);
  EXPECT_THAT(name.message(), HasSubstr("\"gpu\""));
  EXPECT_THAT(kubelet_->Resources(), IsEmpty());
  EXPECT_EQ(kubelet_->calls().counts().options, 0);
}

TEST_F(KubeletTest, ADialBackThatFindsNobodyFailsRegister) {
  Make({.dial_timeout = absl::Milliseconds(20)});
  auto plugin = MakePlugin("p.sock");
  ::unlink((plugins() + "/p.sock").c_str());
  EXPECT_THAT(plugin->Register("v/gpu").message(), HasSubstr("failed to dial device plugin"));
  EXPECT_THAT(kubelet_->Resources(), IsEmpty());
}

TEST_F(KubeletTest, ShowsEverySnapshot) {
  const auto plugin = MakeRegistered({"a", "b", "c"});
  plugin->Send({{"a", "Unhealthy", {}}, {"b", "Healthy", {0, 1}}});
  ASSERT_TRUE(WaitAllocatable(1));
  const ResourceReport gpu = Gpu();
  EXPECT_EQ(gpu.capacity, 2);
  ASSERT_THAT(gpu.devices, SizeIs(2));
  EXPECT_EQ(gpu.devices[0].id, "a");
  EXPECT_FALSE(gpu.devices[0].healthy);
  EXPECT_THAT(gpu.devices[1].numa_nodes, ElementsAre(0, 1));
}

TEST_F(KubeletTest, AnEndedStreamIsNotOpenedAgainAndTheResourceGoesAfterFiveMinutes) {
  const auto plugin = MakeRegistered({"a", "b"});
  plugin->EndStreams();
  ASSERT_TRUE(WaitDisconnected());
  EXPECT_EQ(Gpu().capacity, 2);
  EXPECT_EQ(Gpu().allocatable, 0);
  EXPECT_THAT(AddPod("pod", 1).message, HasSubstr("no healthy devices present"));

  clock_.Advance(absl::Minutes(5) - absl::Seconds(1));
  EXPECT_EQ(Gpu().capacity, 2);
  clock_.Advance(absl::Seconds(1));
  EXPECT_THAT(kubelet_->Resources(), IsEmpty());
  EXPECT_EQ(kubelet_->calls().counts().streams_opened, 1);
}

TEST_F(KubeletTest, TheRemovalOfAResourceWakesWhoWaitsForIt) {
  Make({.endpoint_grace = absl::Milliseconds(20)}, /*real_time=*/true);
  const auto plugin = MakeRegistered({"a"});
  plugin->EndStreams();
  EXPECT_TRUE(kubelet_->WaitFor([&] { return kubelet_->Resources().empty(); }, kPatience));
}

TEST_F(KubeletTest, APluginThatDiesEndsItsStream) {
  const auto plugin = MakeRegistered({"a"});
  plugin->Stop();
  EXPECT_TRUE(WaitDisconnected());
}

TEST_F(KubeletTest, TheNewestRegistrationWins) {
  const auto old = MakeRegistered({"a"});
  const auto plugin = MakePlugin("q.sock");
  plugin->Send(HealthyDevices({"x", "y"}));
  ASSERT_TRUE(plugin->Register("v/gpu").ok());
  ASSERT_TRUE(WaitAllocatable(2));
  ASSERT_TRUE(AddPod("pod", 2).admitted);
}

TEST_F(KubeletTest, AnOldStreamThatEndsAfterANewRegistrationLeavesTheResource) {
  const auto old = MakeRegistered({"a"});
  const auto plugin = MakePlugin("q.sock");
  plugin->Send(HealthyDevices({"x", "y"}));
  ASSERT_TRUE(plugin->Register("v/gpu").ok());
  ASSERT_TRUE(WaitAllocatable(2));
  old->EndStreams();
  ASSERT_TRUE(
      kubelet_->WaitFor([&] { return kubelet_->calls().counts().streams_ended == 1; }, kPatience));
  EXPECT_TRUE(Gpu().connected);
  EXPECT_EQ(Gpu().allocatable, 2);
  EXPECT_TRUE(AddPod("pod", 2).admitted);
}

TEST_F(KubeletTest, ASocketThatRegistersTwiceIsRefusedAndNoLongerWatched) {
  const auto plugin = MakeRegistered({"a", "b"});
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(plugin->Register("v/gpu").message(),
              absl::StrCat("device plugin already connected: ", plugins(), "/p.sock"));
  }
  plugin->EndStreams();
  ASSERT_TRUE(
      kubelet_->WaitFor([&] { return kubelet_->calls().counts().streams_ended == 1; }, kPatience));
  EXPECT_TRUE(Gpu().connected);
  EXPECT_EQ(Gpu().allocatable, 2);
  EXPECT_FALSE(plugin->Register("v/gpu").ok());
  kubelet_->Stop();
  EXPECT_FALSE(Gpu().connected);
  ASSERT_TRUE(kubelet_->Start().ok());
}

// kubelet counts what pods ask for besides what it knows to be allocated.
TEST_F(KubeletTest, WithoutItsCheckpointPodsStillCountForWhatTheyAskedFor) {
  auto plugin = MakeRegistered({"a", "b", "c", "d"});
  ASSERT_TRUE(AddPod("first", 2).admitted);
  kubelet_->Stop();
  ASSERT_TRUE(kubelet_->LoseCheckpoint().ok());
  ASSERT_TRUE(kubelet_->Start().ok());
  plugin = MakePlugin("q.sock");
  plugin->Send(HealthyDevices({"a", "b", "c", "d"}));
  ASSERT_TRUE(plugin->Register("v/gpu").ok());
  ASSERT_TRUE(WaitAllocatable(4));
  const PodStatus status = AddPod("second", 3);
  EXPECT_EQ(status.reason, "OutOfv/gpu");
  EXPECT_EQ(status.message,
            "Node didn't have enough resource: v/gpu, requested: 3, used: 2, capacity: 4");
  EXPECT_TRUE(AddPod("third", 2).admitted);
}

TEST_F(KubeletTest, AContainerThatTheTopologyPolicyRefusesFailsThePod) {
  Make({.topology = TopologyPolicy::kSingleNumaNode});
  const auto plugin = MakePlugin("p.sock");
  plugin->Send({{"a", "Healthy", {0}}, {"b", "Healthy", {1}}, {"c", "Healthy", {1}}});
  ASSERT_TRUE(plugin->Register("v/gpu").ok());
  ASSERT_TRUE(WaitAllocatable(3));
  const PodStatus three = AddPod("three", 3);
  EXPECT_EQ(three.reason, "TopologyAffinityError");
  EXPECT_EQ(three.message, "Resources cannot be allocated with Topology locality");
  const PodStatus two = AddPod("two", 2);
  ASSERT_TRUE(two.admitted) << two.message;
  EXPECT_THAT(two.containers.at(0).devices.at("v/gpu"), ElementsAre("b", "c"));
}

TEST_F(KubeletTest, ByNameOnlyTheOldStreamsEndAlsoClosesTheNewPlugin) {
  Make({.plugins_by_name_only = true});
  const auto old = MakeRegistered({"a"});
  const auto plugin = MakePlugin("q.sock");
  plugin->Send(HealthyDevices({"x", "y"}));
  ASSERT_TRUE(plugin->Register("v/gpu").ok());
  ASSERT_TRUE(WaitAllocatable(2));
  old->EndStreams();
  // The closed plugin's stream ends too, and would take a registration before that with it.
  ASSERT_TRUE(
      kubelet_->WaitFor([&] { return kubelet_->calls().counts().streams_ended == 2; }, kPatience));
  EXPECT_FALSE(Gpu().connected);
  ASSERT_TRUE(plugin->Register("v/gpu").ok());  // the way out
  EXPECT_TRUE(WaitAllocatable(2));
}

TEST_F(KubeletTest, APodsAnswerIsWhatThePluginSaid) {
  const auto plugin =
      MakeRegistered({"a", "b", "c"},
                     {.prefer = [](const auto&) { return std::vector<std::string>{"c", "a"}; },
                      .allocate =
                          [](const auto&) {
                            return AllocateAnswer{.envs = {{"PCI", "0000:19:00.0"}},
                                                  .annotations = {{"k", "v"}},
                                                  .nodes = {{"/dev/vfio/3", "/dev/vfio/3", "mrw"}},
                                                  .mounts = {{"/c", "/h", true}},
                                                  .cdi_devices = {"v/gpu=a"}};
                          }});
  const PodStatus status = AddPod("pod", 2);
  ASSERT_TRUE(status.admitted) << status.message;
  const ContainerResult& main = status.containers.at(0);
  EXPECT_EQ(main.name, "main");
  EXPECT_THAT(main.devices.at("v/gpu"), ElementsAre("a", "c"));
  EXPECT_EQ(main.envs.at("PCI"), "0000:19:00.0");
  EXPECT_EQ(main.annotations.at("k"), "v");
  EXPECT_THAT(main.nodes, ElementsAre(DeviceNode{"/dev/vfio/3", "/dev/vfio/3", "mrw"}));
  EXPECT_THAT(main.mounts, ElementsAre(ContainerMount{"/c", "/h", true}));
  EXPECT_THAT(main.cdi_devices, ElementsAre("v/gpu=a"));

  const auto preferred = kubelet_->calls().preferred();
  ASSERT_THAT(preferred, SizeIs(1));
  EXPECT_THAT(preferred[0].available, SizeIs(3));
  EXPECT_THAT(preferred[0].answer, ElementsAre("c", "a"));
  EXPECT_THAT(kubelet_->calls().allocate().at(0).ids, SizeIs(2));
}

TEST_F(KubeletTest, AnErrorOfThePluginFailsThePodWithKubeletsMessage) {
  const auto plugin = MakeRegistered(
      {"a"}, {.allocate = [](const auto&) { return absl::FailedPreconditionError("GPU busy"); }});
  const PodStatus status = AddPod("pod", 1);
  EXPECT_FALSE(status.admitted);
  EXPECT_EQ(status.reason, "UnexpectedAdmissionError");
  EXPECT_EQ(status.message,
            "Allocate failed due to rpc error: code = FailedPrecondition desc = GPU busy, which is "
            "unexpected");
  ASSERT_THAT(kubelet_->Pods(), SizeIs(1));
  EXPECT_EQ(kubelet_->Pods()[0].status.message, status.message);
  EXPECT_FALSE(Gpu().devices.at(0).in_use);
}

TEST_F(KubeletTest, AnErrorOfThePreferenceFailsThePodToo) {
  const auto plugin = MakeRegistered(
      {"a"}, {.prefer = [](const auto&) { return absl::UnavailableError("no FM"); }});
  EXPECT_EQ(AddPod("pod", 1).message,
            "Allocate failed due to device plugin GetPreferredAllocation rpc failed with err: rpc "
            "error: code = Unavailable desc = no FM, which is unexpected");
}

TEST_F(KubeletTest, AnswersWithoutAContainerAreNoPreferenceAndAnAllocateError) {
  const auto plugin = MakeRegistered(
      {"a"}, {.allocate = [](const auto&) { return std::optional<AllocateAnswer>(); }});
  EXPECT_THAT(AddPod("pod", 1).message, HasSubstr("no containers return in allocation response"));
  EXPECT_THAT(kubelet_->calls().preferred().at(0).error, IsEmpty());
}

TEST_F(KubeletTest, AFailedPodsNameIsFreeAndAnActiveOnesIsNot) {
  const auto plugin = MakeRegistered({"a"});
  EXPECT_FALSE(AddPod("pod", 2).admitted);
  EXPECT_TRUE(AddPod("pod", 1).admitted);
  EXPECT_EQ(AddPod("pod", 1).reason, "AlreadyExists");
  EXPECT_EQ(AddPod("", 1).reason, "Invalid");
  EXPECT_EQ(AddPod("less", -1).reason, "Invalid");
  EXPECT_TRUE(kubelet_->RemovePod("default", "pod"));
  EXPECT_FALSE(kubelet_->RemovePod("default", "pod"));
  EXPECT_TRUE(AddPod("pod", 1).admitted);
}

// A socket that nobody serves, as a process leaves it that was killed.
void MakeStaleSocket(const std::string& path) {
  const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
}

TEST_F(KubeletTest, ARestartDeletesSocketsOnlyAndServesAnew) {
  auto plugin = MakeRegistered({"a", "b"});
  ASSERT_TRUE(AddPod("pod", 1).admitted);
  std::ofstream(plugins() + "/notes") << "{}";
  std::filesystem::create_directory(plugins() + "/folder.sock");
  MakeStaleSocket(plugins() + "/stale.sock");

  ASSERT_TRUE(kubelet_->Restart().ok());
  EXPECT_TRUE(std::filesystem::is_socket(plugins() + "/kubelet.sock"));
  EXPECT_FALSE(std::filesystem::exists(plugins() + "/stale.sock"));
  EXPECT_FALSE(std::filesystem::exists(plugins() + "/p.sock"));
  EXPECT_TRUE(std::filesystem::exists(plugins() + "/notes"));
  EXPECT_TRUE(std::filesystem::exists(plugins() + "/kubelet_internal_checkpoint"));
  EXPECT_TRUE(std::filesystem::exists(plugins() + "/folder.sock"));

  EXPECT_EQ(Gpu().capacity, 0);
  EXPECT_FALSE(Gpu().connected);
  plugin.reset();
  plugin = MakeRegistered({"a", "b"});
  EXPECT_FALSE(AddPod("two", 2).admitted);  // the first pod still holds one
  EXPECT_TRUE(AddPod("one", 1).admitted);
}

TEST_F(KubeletTest, AFolderOfARealKubeletIsLeftAlone) {
  kubelet_->Stop();
  const std::string path = plugins() + "/kubelet_internal_checkpoint";
  const std::string real =
      R"({"Data":{"PodDeviceEntries":null,"RegisteredDevices":{"v/gpu":[]}},"Checksum":2413})";
  std::ofstream(path) << real;
  const Status status = kubelet_->Start();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr(path));
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), real);
}

TEST_F(KubeletTest, StopEndsAnAllocateInFlightAndForgetsThatPod) {
  absl::Notification in_allocate;
  absl::Notification stopped;
  const auto plugin =
      MakeRegistered({"a"}, {.allocate = [&](const auto&) -> Result<std::optional<AllocateAnswer>> {
                       in_allocate.Notify();
                       stopped.WaitForNotification();
                       return AllocateAnswer();
                     }});
  PodStatus status;
  std::thread admission([&] { status = AddPod("pod", 1); });
  in_allocate.WaitForNotification();
  EXPECT_EQ(kubelet_->Pods().at(0).status.reason, "Pending");
  kubelet_->Stop();
  admission.join();
  stopped.Notify();
  EXPECT_EQ(status.reason, "KubeletStopped");
  EXPECT_THAT(kubelet_->Pods(), IsEmpty());
  EXPECT_EQ(AddPod("pod", 1).reason, "KubeletStopped");
}

TEST_F(KubeletTest, ARegisterCanBeMadeToFail) {
  const auto plugin = MakePlugin("p.sock");
  kubelet_->FailRegisters(2);
  EXPECT_FALSE(plugin->Register("v/gpu").ok());
  EXPECT_FALSE(plugin->Register("v/gpu").ok());
  EXPECT_TRUE(plugin->Register("v/gpu").ok());
  EXPECT_EQ(kubelet_->calls().counts().registers, 3);
}

TEST_F(KubeletTest, AStreamCanBeWithheld) {
  const auto plugin = MakePlugin("p.sock");
  plugin->Send(HealthyDevices({"a"}));
  kubelet_->WithholdStreams(1);
  ASSERT_TRUE(plugin->Register("v/gpu").ok());
  EXPECT_TRUE(Gpu().connected);
  EXPECT_EQ(kubelet_->calls().counts().streams_opened, 0);
  EXPECT_FALSE(plugin->Register("v/gpu").ok()) << "its socket is known";
  const auto again = MakePlugin("q.sock");
  again->Send(HealthyDevices({"a"}));
  ASSERT_TRUE(again->Register("v/gpu").ok());
  EXPECT_TRUE(WaitAllocatable(1));
}

TEST_F(KubeletTest, TheDialBackCanBeHeld) {
  const auto plugin = MakePlugin("p.sock");
  kubelet_->HoldDialBack(true);
  Status status;
  std::thread registration([&] { status = plugin->Register("v/gpu"); });
  ASSERT_TRUE(
      kubelet_->WaitFor([&] { return kubelet_->calls().counts().registers == 1; }, kPatience));
  EXPECT_EQ(kubelet_->calls().counts().options, 0);
  kubelet_->HoldDialBack(false);
  registration.join();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(kubelet_->calls().counts().options, 1);
}

TEST_F(KubeletTest, StopReleasesAHeldRegister) {
  const auto plugin = MakePlugin("p.sock");
  kubelet_->HoldDialBack(true);
  Status status;
  std::thread registration([&] { status = plugin->Register("v/gpu"); });
  ASSERT_TRUE(
      kubelet_->WaitFor([&] { return kubelet_->calls().counts().registers == 1; }, kPatience));
  kubelet_->Stop();
  registration.join();
  EXPECT_FALSE(status.ok());
}

TEST_F(KubeletTest, WaitForGivesUp) {
  EXPECT_FALSE(kubelet_->WaitFor([] { return false; }, absl::ZeroDuration()));
}

TEST_F(KubeletTest, AFolderWithTooLongAPathIsRefusedWithTheLimit) {
  KubeletOptions options;
  options.device_plugins_folder = folder_ + "/" + std::string(120, 'x');
  Kubelet kubelet(options);
  EXPECT_THAT(kubelet.Start().message(), HasSubstr("at most 107 bytes"));
}

}  // namespace
}  // namespace switchyard::sim
