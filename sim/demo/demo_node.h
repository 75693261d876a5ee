// SPDX-License-Identifier: Apache-2.0
#pragma once

// A simulated node in a folder of its own below /tmp, which goes with it, and the real agent on it.
// Waits for events, each at most kPatience; an error says what did not come. One thread.

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sim/node/sim_node.h"
#include "sim/process/process.h"

namespace switchyard::sim {

class DemoNode {
 public:
  struct Options {
    std::string agent;  // the switchyard binary
    std::string board;
    std::uint64_t seed = 1;
    YamlOverrides config = {};  // of the agent
  };
  static constexpr absl::Duration kPatience = absl::Seconds(60);

  // Without an agent yet. A board of fewer than 8 GPUs is kInvalidArgument.
  [[nodiscard]] static Result<std::unique_ptr<DemoNode>> Create(Options options);
  ~DemoNode();
  DemoNode(const DemoNode&) = delete;
  DemoNode& operator=(const DemoNode&) = delete;

  [[nodiscard]] SimNode& sim() { return *sim_; }
  [[nodiscard]] Kubelet& kubelet() { return sim_->kubelet(); }
  [[nodiscard]] FabricManager& fm() { return sim_->fm(); }
  [[nodiscard]] const Board& board() const { return sim_->board(); }
  [[nodiscard]] int gpus() const { return static_cast<int>(board().devices.size()); }
  [[nodiscard]] const std::string& folder() const { return folder_; }

  // Until it has read Fabric Manager's table and kubelet has that many healthy GPUs.
  [[nodiscard]] Status StartAgent(int healthy);
  [[nodiscard]] Status AwaitHealthy(int gpus);
  void KillAgent();                  // SIGKILL, wherever it is
  [[nodiscard]] Status StopAgent();  // SIGTERM; an error unless it ends with 0
  [[nodiscard]] std::string AgentLog() const;
  // An operator's command beside it; what it printed is the error, unless it ends with 0.
  [[nodiscard]] Status RunCommand(std::vector<std::string> arguments) const;

  // From now on AwaitEvent looks only at what the agent logs later.
  void Mark() { agent_->Mark(); }
  // The event's message.
  [[nodiscard]] Result<std::string> AwaitEvent(const std::string& event);

  // A pod with one container. Its letter is its name.
  PodStatus AddPod(char pod, int gpus);
  void RemovePod(char pod);
  // Of the GPUs that the pod's container was given.
  [[nodiscard]] std::set<int> ModulesOf(const PodStatus& status) const;
  [[nodiscard]] std::set<int> ModulesOf(const std::vector<std::string>& ids) const;

 private:
  explicit DemoNode(Options options) : options_(std::move(options)) {}

  const Options options_;
  std::string folder_;
  std::string config_;  // path
  std::unique_ptr<SimNode> sim_;
  std::unique_ptr<Process> agent_;
};

}  // namespace switchyard::sim
