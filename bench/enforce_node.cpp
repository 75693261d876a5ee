// SPDX-License-Identifier: Apache-2.0
#include "bench/enforce_node.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "apps/operator_client.h"
#include "base/files.h"
#include "sim/fm/table.h"

namespace switchyard::bench {

Result<std::unique_ptr<EnforceNode>> EnforceNode::Create(const EnforceNodeOptions& options) {
  auto node = std::unique_ptr<EnforceNode>(new EnforceNode(options.folder));
  sim::SimNodeOptions sim;
  sim.dir = options.folder;
  ASSIGN_OR_RETURN(node->node_, sim::SimNode::Create(sim));
  for (const sim::BoardPartition& partition : node->node_->board().partitions) {
    if (partition.modules.size() != 2) continue;
    std::vector<std::string> ids;
    for (const int module : partition.modules)
      ids.push_back(node->node_->AddressOf(module).ToString());
    node->pairs_.push_back(std::move(ids));
  }
  sim::YamlOverrides config = {{"fabric.mode", "enforce"},
                               {"http.address", "\"127.0.0.1:0\""},
                               {"paths.state", absl::StrCat("\"", options.state, "\"")}};
  if (!options.library.empty()) {
    const std::string list = options.folder + "/list";
    const auto table = sim::MakeList(node->node_->board(), {}, /*zero_pci_bus_ids=*/false, {});
    std::ofstream(list, std::ios::binary)
        .write(reinterpret_cast<const char*>(table.get()), sizeof(*table));
    config["fabric.library"] = absl::StrCat("\"", options.library, "\"");
    config["fabric.address"] = absl::StrCat("\"unix:", list, "\"");
  }
  RETURN_IF_ERROR(
      WriteFileAtomically(node->node_->paths().agent_yaml(), node->node_->AgentYaml(config)));
  return node;
}

Status EnforceNode::Start(const std::string& agent_binary) {
  ASSIGN_OR_RETURN(AgentProcess agent,
                   StartAgent(agent_binary, node_->paths().agent_yaml(), *node_));
  agent_ = std::move(agent.process);
  plugin_ = Dial(PluginSocket(*node_));
  next_ = 0;
  calls_.emplace([this] { return Allocate(*plugin_, pairs_[next_++ % pairs_.size()]); });
  return OkStatus();
}

void EnforceNode::WarmUp(int rounds) {
  for (int i = 0; i < rounds; ++i) Round();
  calls_->Forget();
}

void EnforceNode::Round() {
  calls_->Call(static_cast<int>(pairs_.size()));
  if (const Status released = Release(); !released.ok()) {
    std::cerr << "releasing failed: " << released.message() << "\n" << agent_->Output();
    std::exit(1);
  }
}

Status EnforceNode::Release() const {
  const apps::OperatorClient agent{node_->paths().agent_socket(), absl::Seconds(60)};
  ASSIGN_OR_RETURN(const std::string text, agent.Get("/v1/tenancies"));
  const nlohmann::json view = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  for (const nlohmann::json& tenancy : view["tenancies"]) {
    const std::string id = tenancy["id"].dump();
    RETURN_IF_ERROR(agent.Post(absl::StrCat("/v1/release/", id, "/force")).status());
  }
  return OkStatus();
}

Status EnforceNode::Stop() {
  plugin_.reset();
  if (agent_->Stop() != 0) return absl::InternalError("the agent did not stop cleanly");
  agent_.reset();
  return OkStatus();
}

}  // namespace switchyard::bench
