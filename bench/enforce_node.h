// SPDX-License-Identifier: Apache-2.0
#pragma once

// A simulated HGX H100 node whose agent enforces, for what a pod's admission costs there: each of
// the board's four pairs is granted once, so that every Allocate activates a partition, and then
// all are released by the operator, which is not timed. One thread.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "bench/agent_process.h"
#include "bench/calls.h"
#include "sim/node/sim_node.h"

namespace switchyard::bench {

struct EnforceNodeOptions {
  std::string folder;  // of the node; short
  std::string state;   // of the agent
  // A libnvfm that answers from memory (instant_nvfm.cpp); empty: the simulator's, over its socket.
  std::string library;
};

class EnforceNode {
 public:
  [[nodiscard]] static Result<std::unique_ptr<EnforceNode>> Create(
      const EnforceNodeOptions& options);

  [[nodiscard]] Status Start(const std::string& agent_binary);
  // Warmed up by `rounds` that are not counted.
  void WarmUp(int rounds);
  // Four Allocates of two GPUs each, and their release. A failure ends the program.
  void Round();
  [[nodiscard]] Latency latency() { return calls_->latency(); }
  [[nodiscard]] double pss() const { return PssWithChildren(agent_->pid()); }
  [[nodiscard]] Status Stop();

 private:
  explicit EnforceNode(std::string folder) : folder_(std::move(folder)) {}
  Status Release() const;

  const std::string folder_;
  std::unique_ptr<sim::SimNode> node_;
  std::vector<std::vector<std::string>> pairs_;  // device ids
  std::size_t next_ = 0;
  std::unique_ptr<sim::Process> agent_;
  std::unique_ptr<Plugin> plugin_;
  std::optional<Caller> calls_;
};

}  // namespace switchyard::bench
