// SPDX-License-Identifier: Apache-2.0
// The scenarios of tests/data/kubelet-scenarios.json on the simulated kubelet;
// tests/cluster/e2e/scenarios_test.go does the same ones on a real kubelet, in the same modes, so
// that what the agent's other tests rely on is what kubelet does.

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "k8s_podresources_v1.grpc.pb.h"
#include "sim/kubelet/fake_plugin_for_test.h"
#include "tests/node/node_test.h"
#include "tests/node/scenario_file.h"

namespace switchyard::sim {
namespace {

const Result<ScenarioFile>& File() {
  static const Result<ScenarioFile> file = [] {
    const std::string path = SWITCHYARD_SOURCE_DIR "/tests/data/kubelet-scenarios.json";
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return ParseScenarios(text.str(), path);
  }();
  return file;
}

constexpr absl::string_view kAdvise = "advise";
constexpr absl::string_view kEnforce = "enforce";

struct Run {
  std::string mode, scenario;
};
void PrintTo(const Run& run, std::ostream* out) { *out << run.mode << "/" << run.scenario; }

// Of a file that can't be read: one test, which says why.
std::vector<Run> Runs() {
  std::vector<Run> runs;
  if (!File().ok()) return {{"advise", "None"}};
  for (const absl::string_view mode : {kAdvise, kEnforce}) {
    for (const Scenario& scenario : File()->scenarios) {
      if (mode == kAdvise || !scenario.advise_only)
        runs.push_back({std::string(mode), scenario.name});
    }
  }
  return runs;
}

using Lists = std::map<std::string, std::map<std::string, std::vector<std::string>>>;

class ScenariosTest : public NodeTest, public ::testing::WithParamInterface<Run> {
 protected:
  void Do(const ScenarioStep& step);
  void DoKubelet(const ScenarioStep& step);
  void DoPlugin(const ScenarioStep& step);

  void CreatePod(const ScenarioStep& step);
  PodStatus Pod(const std::string& name) const;
  void ExpectAdmitted(const std::string& name);
  void ExpectActive(const std::string& name);
  void ExpectRefused(const ScenarioStep& step) const;
  void ExpectDevices(const ScenarioStep& step);
  void ExpectHanded(const ScenarioStep& step);
  void ExpectList(const ScenarioStep& step);
  void ExpectNode(const ScenarioStep& step);
  void ExpectCalls(const ScenarioStep& step) const;
  void StartKubelet();
  void WaitForGpus();

  ResourceReport Report(const std::string& resource) const {
    const auto resources = node_->kubelet().Resources();
    const auto found = resources.find(resource);
    return found == resources.end() ? ResourceReport{} : found->second;
  }
  // Asks until kubelet's rate allows it.
  template <typename Request, typename Response, typename Method>
  grpc::Status Ask(Method method, const Request& request, Response& response);
  static std::map<std::string, std::vector<std::string>> Ids(const v1::PodResources& pod);
  // What PodResources Get says: container -> ids.
  std::map<std::string, std::vector<std::string>> Devices(const std::string& pod);
  std::set<int> ModulesOf(const std::vector<std::string>& ids) const;
  YamlOverrides Mode() const { return {{"fabric.mode", GetParam().mode}}; }

  bool kubelet_runs_ = true;
  std::map<std::string, std::set<std::string>>
      handed_;         // POD/CONTAINER -> what its environment says
  CallCounts before_;  // the last create-pod
  std::map<std::string, std::unique_ptr<FakePlugin>> plugins_;
};

void ScenariosTest::Do(const ScenarioStep& step) {
  if (step.action == "create-pod") return CreatePod(step);
  if (step.action == "expect-admitted") return ExpectAdmitted(step.pod);
  if (step.action == "expect-refused") return ExpectRefused(step);
  if (step.action == "expect-devices") return ExpectDevices(step);
  if (step.action == "expect-handed") return ExpectHanded(step);
  if (step.action == "expect-list") return ExpectList(step);
  if (step.action == "expect-node") return ExpectNode(step);
  if (step.action == "expect-calls") return ExpectCalls(step);
  if (step.action == "delete-pod") {
    EXPECT_TRUE(node_->kubelet().RemovePod("default", step.pod));
    return;
  }
  if (step.action == "expect-unknown") {
    v1::GetPodResourcesRequest request;
    request.set_pod_name(step.pod);
    request.set_pod_namespace("default");
    v1::GetPodResourcesResponse response;
    const grpc::Status status = Ask(&v1::PodResourcesLister::Stub::Get, request, response);
    EXPECT_EQ(status.error_message(),
              absl::StrCat("pod ", step.pod, " in namespace default not found"));
    return;
  }
  if (step.action == "gpu-vanishes") {
    EXPECT_TRUE(node_->sysfs().Vanish(node_->AddressOf(step.module)).ok());
    return;
  }
  if (step.action == "gpu-returns") {
    EXPECT_TRUE(node_->sysfs().Return(node_->AddressOf(step.module)).ok());
    return;
  }
  if (absl::StartsWith(step.action, "plugin-")) return DoPlugin(step);
  DoKubelet(step);
}

void ScenariosTest::DoKubelet(const ScenarioStep& step) {
  if (step.action == "stop-kubelet") {
    node_->kubelet().Stop();
    kubelet_runs_ = false;
  } else if (step.action == "delete-checkpoint") {
    EXPECT_TRUE(node_->kubelet().LoseCheckpoint().ok());
  } else if (step.action == "start-kubelet") {
    StartKubelet();
  } else if (step.action == "stop-agent") {
    agent_.reset();
    EXPECT_TRUE(WaitForKubelet([this] { return !Report(File()->gpu).connected; }));
  } else if (step.action == "start-agent") {
    StartAgent(Mode(), /*wait=*/false);
    WaitForGpus();
  } else {
    FAIL() << "this runner does not have it";
  }
}

void ScenariosTest::StartKubelet() {
  ASSERT_TRUE(node_->kubelet().Start().ok());
  kubelet_runs_ = true;
  // A real one does so by itself, as soon as the API server has told it of its pods.
  for (const PodReport& pod : node_->kubelet().Pods()) {
    if (!pod.status.admitted) continue;
    const auto status = node_->kubelet().ReadmitPod(pod.ns, pod.name);
    EXPECT_TRUE(status.ok()) << status.status();
  }
  if (agent_ != nullptr) WaitForGpus();
}

void ScenariosTest::WaitForGpus() {
  EXPECT_TRUE(WaitForKubelet([this] {
    const ResourceReport report = Report(File()->gpu);
    return report.connected && report.capacity > 0;
  }));
}

void ScenariosTest::DoPlugin(const ScenarioStep& step) {
  if (step.action == "plugin-listens") {
    plugins_[step.plugin] = std::make_unique<FakePlugin>(
        node_->paths().device_plugins(), absl::StrCat(step.plugin, ".sock"),
        FakePlugin::Behaviour{.prefer = [](const PreferredRequest& request) {
          const auto end = request.available.begin() + request.size;
          return std::vector<std::string>(request.available.begin(), end);
        }});
    plugins_[step.plugin]->Send(HealthyDevices(step.devices));
    return;
  }
  ASSERT_TRUE(plugins_.contains(step.plugin)) << "no plugin-listens for it";
  FakePlugin& plugin = *plugins_[step.plugin];
  const auto count = [this](std::int64_t CallCounts::* which) {
    return node_->kubelet().calls().counts().*which;
  };
  if (step.action == "plugin-registers") {
    const std::int64_t opened = count(&CallCounts::streams_opened);
    const Status status = plugin.Register(File()->thing);
    if (!step.refused.empty()) {
      EXPECT_FALSE(status.ok());
      EXPECT_THAT(status.message(), ::testing::HasSubstr(step.refused));
      return;
    }
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_TRUE(WaitForKubelet([&] { return count(&CallCounts::streams_opened) > opened; }));
  } else if (step.action == "plugin-stream-ends") {
    const std::int64_t ended = count(&CallCounts::streams_ended);
    plugin.EndStreams();
    EXPECT_TRUE(WaitForKubelet([&] { return count(&CallCounts::streams_ended) > ended; }));
  } else {
    FAIL() << "this runner does not have it";
  }
}

void ScenariosTest::CreatePod(const ScenarioStep& step) {
  ASSERT_TRUE(kubelet_runs_) << "the simulated kubelet has no API server that would keep the pod";
  PodSpec spec;
  spec.name = step.pod;
  for (const ScenarioContainer& wanted : step.containers) {
    ContainerSpec& container = spec.containers.emplace_back();
    container.name = wanted.name;
    container.init = wanted.init;
    container.restartable = wanted.restartable;
    if (wanted.gpus > 0) container.resources[File()->gpu] = wanted.gpus;
    if (wanted.things > 0) container.resources[File()->thing] = wanted.things;
  }
  before_ = node_->kubelet().calls().counts();
  (void)node_->kubelet().AddPod(spec);
}

PodStatus ScenariosTest::Pod(const std::string& name) const {
  for (const PodReport& pod : node_->kubelet().Pods()) {
    if (pod.name == name) return pod.status;
  }
  ADD_FAILURE() << "no pod " << name;
  return {};
}

void ScenariosTest::ExpectAdmitted(const std::string& name) {
  const PodStatus pod = Pod(name);
  EXPECT_TRUE(pod.admitted) << name << ": " << pod.reason << ": " << pod.message;
  for (const ContainerResult& container : pod.containers) {
    EXPECT_NE(container.state, ContainerState::kWaiting)
        << name << "/" << container.name << ": " << container.waiting;
    const auto gpus = container.envs.find(File()->gpu_environment);
    if (gpus == container.envs.end()) continue;
    handed_[absl::StrCat(name, "/", container.name)] = absl::StrSplit(gpus->second, ',');
  }
  if (GetParam().mode == kEnforce) ExpectActive(name);
}

// By kubelet's word and Fabric Manager's, not the agent's.
void ScenariosTest::ExpectActive(const std::string& name) {
  const std::set<int> active = node_->fm().active();
  for (const auto& [container, ids] : Devices(name)) {
    const std::set<int> modules = ModulesOf(ids);
    if (modules.empty()) continue;  // nothing of the agent's
    const std::optional<int> partition = PartitionOf(modules);
    EXPECT_TRUE(partition.has_value() && active.contains(*partition))
        << name << "/" << container << " has modules " << ::testing::PrintToString(modules)
        << ", partition " << partition.value_or(-1) << "; active are "
        << ::testing::PrintToString(active);
  }
}

void ScenariosTest::ExpectRefused(const ScenarioStep& step) const {
  const PodStatus pod = Pod(step.pod);
  EXPECT_FALSE(pod.admitted);
  EXPECT_EQ(pod.reason, step.reason);
  EXPECT_THAT(pod.message, ::testing::HasSubstr(step.message));
}

template <typename Request, typename Response, typename Method>
grpc::Status ScenariosTest::Ask(Method method, const Request& request, Response& response) {
  const auto channel =
      grpc::CreateChannel(absl::StrCat("unix:", node_->paths().pod_resources(), "/kubelet.sock"),
                          grpc::InsecureChannelCredentials());
  v1::PodResourcesLister::Stub stub(channel);
  for (;;) {
    grpc::ClientContext context;
    const grpc::Status status = (stub.*method)(&context, request, &response);
    if (status.error_code() != grpc::StatusCode::RESOURCE_EXHAUSTED) return status;
    EXPECT_TRUE(node_->AdvanceClock(absl::Milliseconds(100)).ok());
  }
}

std::map<std::string, std::vector<std::string>> ScenariosTest::Ids(const v1::PodResources& pod) {
  std::map<std::string, std::vector<std::string>> ids;
  for (const v1::ContainerResources& container : pod.containers()) {
    std::vector<std::string>& all = ids[container.name()];
    for (const v1::ContainerDevices& devices : container.devices()) {
      all.insert(all.end(), devices.device_ids().begin(), devices.device_ids().end());
    }
  }
  return ids;
}

std::map<std::string, std::vector<std::string>> ScenariosTest::Devices(const std::string& pod) {
  v1::GetPodResourcesRequest request;
  request.set_pod_name(pod);
  request.set_pod_namespace("default");
  v1::GetPodResourcesResponse response;
  const grpc::Status status = Ask(&v1::PodResourcesLister::Stub::Get, request, response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return Ids(response.pod_resources());
}

std::set<int> ScenariosTest::ModulesOf(const std::vector<std::string>& ids) const {
  std::set<int> modules;
  for (const BoardDevice& device : node_->board().devices) {
    if (std::find(ids.begin(), ids.end(), device.address.ToString()) != ids.end()) {
      modules.insert(device.module);
    }
  }
  return modules;
}

void ScenariosTest::ExpectDevices(const ScenarioStep& step) {
  const std::vector<std::string> ids = Devices(step.pod)[step.container];
  EXPECT_THAT(ids, ::testing::SizeIs(step.count));
  if (step.partition.empty()) return;
  const std::set<int> modules = ModulesOf(ids);
  EXPECT_EQ(PartitionOf(modules).has_value(), step.partition == "one")
      << ::testing::PrintToString(modules);
}

void ScenariosTest::ExpectHanded(const ScenarioStep& step) {
  ASSERT_TRUE(handed_.contains(step.of) && handed_.contains(step.to))
      << "one was not seen running with GPUs";
  const std::set<std::string>& of = handed_[step.of];
  const std::set<std::string>& to = handed_[step.to];
  const auto within = [](const auto& a, const auto& b) {
    return std::includes(b.begin(), b.end(), a.begin(), a.end());
  };
  const bool apart =
      std::none_of(of.begin(), of.end(), [&](const std::string& id) { return to.contains(id); });
  EXPECT_TRUE(
      (step.relation == "equals" && of == to) || (step.relation == "within" && within(of, to)) ||
      (step.relation == "contains" && within(to, of)) || (step.relation == "apart-from" && apart))
      << ::testing::PrintToString(of) << ", " << ::testing::PrintToString(to);
}

void ScenariosTest::ExpectList(const ScenarioStep& step) {
  v1::ListPodResourcesResponse response;
  const grpc::Status status =
      Ask(&v1::PodResourcesLister::Stub::List, v1::ListPodResourcesRequest(), response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  std::map<std::string, std::map<std::string, int>> listed;
  for (const v1::PodResources& pod : response.pod_resources()) {
    listed[pod.name()];
    for (const auto& [container, ids] : Ids(pod)) {
      listed[pod.name()][container] = static_cast<int>(ids.size());
    }
  }
  EXPECT_EQ(listed, step.pods);
}

void ScenariosTest::ExpectNode(const ScenarioStep& step) {
  const std::string& resource = step.resource == "gpu" ? File()->gpu : File()->thing;
  EXPECT_TRUE(WaitForKubelet([&] {
    const ResourceReport report = Report(resource);
    return report.capacity == step.capacity && report.allocatable == step.allocatable;
  })) << "capacity "
      << Report(resource).capacity << ", allocatable " << Report(resource).allocatable;
}

void ScenariosTest::ExpectCalls(const ScenarioStep& step) const {
  const CallCounts now = node_->kubelet().calls().counts();
  EXPECT_EQ(now.preferred - before_.preferred, step.preferred);
  EXPECT_EQ(now.allocate - before_.allocate, step.allocate);
}

TEST_P(ScenariosTest, IsAsOnARealKubelet) {
  ASSERT_TRUE(File().ok()) << File().status();
  const auto scenario =
      std::find_if(File()->scenarios.begin(), File()->scenarios.end(),
                   [](const Scenario& one) { return one.name == GetParam().scenario; });
  ASSERT_NE(scenario, File()->scenarios.end()) << "no scenarios in the file";
  MakeNode({.board = File()->board, .topology_policy = scenario->topology_policy});
  StartAgent(Mode());
  WaitForLog("event=fabric_up");
  // In enforce no device is healthy before that.
  const int all = static_cast<int>(node_->board().devices.size());
  ASSERT_TRUE(WaitForKubelet([&] { return Report(File()->gpu).allocatable == all; }));
  for (size_t i = 0; i < scenario->steps.size() && !HasFatalFailure(); ++i) {
    SCOPED_TRACE(absl::StrCat(scenario->name, ": steps[", i, "]: ", scenario->steps[i].action));
    Do(scenario->steps[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(Kubelet, ScenariosTest, ::testing::ValuesIn(Runs()), [](const auto& test) {
  return absl::StrCat(test.param.mode, "_", test.param.scenario);
});

}  // namespace
}  // namespace switchyard::sim
