// SPDX-License-Identifier: Apache-2.0
#pragma once

// The real agent of a simulated node, started, killed with SIGKILL, started again. What it leaves
// behind when it dies (its helper, a child in between) becomes this process's to watch, and must
// end by itself. One thread; this process must be a child subreaper.

#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"
#include "sim/node/sim_node.h"
#include "sim/process/process.h"

namespace switchyard::kill {

struct ShownTenancy {
  std::set<int> modules;
  bool active = false;  // its partition, by the last list that was read
};

class Agent {
 public:
  static constexpr absl::Duration kPatience = absl::Seconds(60);

  // `binary` is the program, `config` its configuration file.
  Agent(sim::SimNode& node, std::string binary, std::string config);

  [[nodiscard]] bool running() const { return process_ != nullptr; }
  [[nodiscard]] Status Start();
  // Until Fabric Manager was read and kubelet has healthy devices of it.
  [[nodiscard]] Status AwaitReady() const;
  // SIGKILL; returns once all its children have ended, how many there were, and kubelet knows. An
  // error names what lived on.
  [[nodiscard]] Result<int> Kill();
  // SIGTERM; an error unless it ends cleanly, with all its children.
  [[nodiscard]] Status Stop();

  // The GPUs' resource; empty before its first registration.
  [[nodiscard]] std::string Resource() const;
  // What `switchyard tenancies` says: of the agent, or without one of the state file.
  [[nodiscard]] Result<std::vector<ShownTenancy>> Tenancies() const;
  [[nodiscard]] Status VerifyJournal() const;

  // The end of the log of this agent and of the one before it.
  [[nodiscard]] std::string Log() const;

 private:
  [[nodiscard]] Result<std::string> Run(std::vector<std::string> arguments) const;

  sim::SimNode& node_;
  const std::string binary_;
  const std::string config_;
  std::unique_ptr<sim::Process> process_;
  std::string log_before_;
};

}  // namespace switchyard::kill
