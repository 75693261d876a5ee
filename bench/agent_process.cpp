// SPDX-License-Identifier: Apache-2.0
#include "bench/agent_process.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/calls.h"

namespace switchyard::bench {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);

double Pss(pid_t pid) {
  std::ifstream rollup(absl::StrCat("/proc/", pid, "/smaps_rollup"));
  for (std::string line; std::getline(rollup, line);) {
    double kib = 0;
    if (std::sscanf(line.c_str(), "Pss: %lf kB", &kib) == 1) return kib * 1024;
  }
  return 0;
}

std::vector<pid_t> Children(pid_t pid) {
  std::vector<pid_t> children;
  for (const auto& task :
       std::filesystem::directory_iterator(absl::StrCat("/proc/", pid, "/task"))) {
    std::ifstream list(task.path() / "children");
    for (pid_t child; list >> child;) children.push_back(child);
  }
  return children;
}

}  // namespace

Result<AgentProcess> StartAgent(const std::string& binary, const std::string& config,
                                sim::SimNode& node) {
  AgentProcess agent;
  const auto start = SteadyClock::now();
  ASSIGN_OR_RETURN(agent.process, sim::Process::Start({binary, "agent", "--config", config}));
  const bool registered = node.kubelet().WaitFor(
      [&node] {
        const auto resources = node.kubelet().Resources();
        return !resources.empty() && resources.begin()->second.connected &&
               resources.begin()->second.allocatable > 0;
      },
      kPatience);
  agent.seconds = Seconds(SteadyClock::now() - start).count();
  if (registered && agent.process->WaitForLine("event=fabric_up", kPatience)) return agent;
  return absl::InternalError(absl::StrCat("the agent did not come up:\n", agent.process->Output()));
}

double PssWithChildren(pid_t pid) {
  double bytes = Pss(pid);
  for (const pid_t child : Children(pid)) bytes += Pss(child);
  return bytes;
}

std::string PluginSocket(const sim::SimNode& node) {
  for (const auto& entry : std::filesystem::directory_iterator(node.paths().device_plugins())) {
    const std::string name = entry.path().filename();
    if (name.rfind("switchyard-", 0) == 0) return entry.path();
  }
  return "";
}

}  // namespace switchyard::bench
