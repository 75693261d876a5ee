// SPDX-License-Identifier: Apache-2.0
#include "sim/demo/demo_node.h"

#include <stdlib.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "sim/node/gpu_resources.h"

namespace switchyard::sim {

Result<std::unique_ptr<DemoNode>> DemoNode::Create(Options options) {
  auto node = std::unique_ptr<DemoNode>(new DemoNode(std::move(options)));
  char folder[] = "/tmp/switchyard-demo-XXXXXX";
  if (::mkdtemp(folder) == nullptr) return ErrnoError(errno, folder);
  node->folder_ = folder;
  ASSIGN_OR_RETURN(
      node->sim_,
      SimNode::Create({.dir = folder, .board = node->options_.board, .seed = node->options_.seed}));
  if (node->gpus() < 8) {
    return absl::InvalidArgumentError("the demo needs a board of 8 GPUs or more");
  }
  YamlOverrides config = {{"fabric.probeInterval", "500ms"}, {"http.address", "\"127.0.0.1:0\""}};
  for (const auto& [key, value] : node->options_.config) config[key] = value;
  node->config_ = absl::StrCat(folder, "/demo.yaml");
  RETURN_IF_ERROR(WriteFileAtomically(node->config_, node->sim_->AgentYaml(config)));
  return node;
}

DemoNode::~DemoNode() {
  agent_.reset();
  sim_.reset();
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

Status DemoNode::StartAgent(int healthy) {
  ASSIGN_OR_RETURN(agent_, Process::Start({options_.agent, "agent", "--config", config_}));
  RETURN_IF_ERROR(AwaitEvent("fabric_up").status());
  return AwaitHealthy(healthy);
}

Status DemoNode::AwaitHealthy(int gpus) {
  const auto so = [this, gpus] {
    const Result<std::string> resource = OnlyGpuResource(*sim_);
    return resource.ok() && kubelet().Resources()[*resource].allocatable == gpus;
  };
  if (kubelet().WaitFor(so, kPatience)) return OkStatus();
  return absl::DeadlineExceededError(
      absl::StrCat("kubelet did not come to have ", gpus, " healthy GPUs"));
}

void DemoNode::KillAgent() {
  agent_->Kill();
  // Else what kubelet knows may be the killed one's when the next has started.
  (void)kubelet().WaitFor([this] { return !OnlyGpuResource(*sim_).ok(); }, kPatience);
}

Status DemoNode::StopAgent() {
  if (agent_->Stop() == 0) return OkStatus();
  return absl::InternalError("the agent did not stop cleanly");
}

std::string DemoNode::AgentLog() const { return agent_ == nullptr ? "" : agent_->Output(); }

Status DemoNode::RunCommand(std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), options_.agent);
  arguments.insert(arguments.end(), {"--config", config_});
  ASSIGN_OR_RETURN(const std::unique_ptr<Process> command, Process::Start(std::move(arguments)));
  const std::optional<int> code = command->Wait(kPatience);
  if (code == 0) return OkStatus();
  return absl::InternalError(
      absl::StrCat("exit code ", code.value_or(-1), ": ", command->Output()));
}

Result<std::string> DemoNode::AwaitEvent(const std::string& event) {
  const std::optional<std::string> line =
      agent_->WaitForLine(absl::StrCat(" event=", event), kPatience);
  if (!line.has_value()) {
    return absl::DeadlineExceededError(absl::StrCat("the agent did not report ", event));
  }
  const std::string quote = "msg=\"";
  const size_t begin = line->find(quote);
  const size_t end = line->find("\" event=");
  if (begin == std::string::npos || end == std::string::npos) return *line;
  return line->substr(begin + quote.size(), end - begin - quote.size());
}

PodStatus DemoNode::AddPod(char pod, int gpus) {
  PodSpec spec;
  spec.name = std::string(1, pod);
  const Result<std::string> resource = OnlyGpuResource(*sim_);
  if (!resource.ok()) return {.reason = "NoResource", .message = resource.status().ToString()};
  spec.containers.push_back({"compute", false, false, {{*resource, gpus}}});
  return kubelet().AddPod(spec);
}

void DemoNode::RemovePod(char pod) { (void)kubelet().RemovePod("default", std::string(1, pod)); }

std::set<int> DemoNode::ModulesOf(const PodStatus& status) const {
  std::vector<std::string> ids;
  for (const ContainerResult& container : status.containers) {
    for (const auto& [resource, its] : container.devices) {
      ids.insert(ids.end(), its.begin(), its.end());
    }
  }
  return ModulesOf(ids);
}

std::set<int> DemoNode::ModulesOf(const std::vector<std::string>& ids) const {
  std::set<int> modules;
  for (const std::string& id : ids) {
    if (const std::optional<int> module = ModuleOfId(*sim_, id)) modules.insert(*module);
  }
  return modules;
}

}  // namespace switchyard::sim
