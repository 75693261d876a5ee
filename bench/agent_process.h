// SPDX-License-Identifier: Apache-2.0
#pragma once

// The real agent beside a simulated node: started, and what it takes of memory. One thread.

#include <memory>
#include <string>

#include "base/status.h"
#include "sim/node/sim_node.h"
#include "sim/process/process.h"

namespace switchyard::bench {

// Started, and kubelet has its devices.
struct AgentProcess {
  std::unique_ptr<sim::Process> process;
  double seconds = 0;  // from exec to then
};
[[nodiscard]] Result<AgentProcess> StartAgent(const std::string& binary, const std::string& config,
                                              sim::SimNode& node);

// Proportional set size of a process and its children, in bytes.
[[nodiscard]] double PssWithChildren(pid_t pid);

// The socket of the agent's only resource in kubelet's folder.
[[nodiscard]] std::string PluginSocket(const sim::SimNode& node);

}  // namespace switchyard::bench
