// SPDX-License-Identifier: Apache-2.0
#pragma once

// The agent: makes the parts, joins them, starts them in the order of the start list and stops them
// in reverse. It decides nothing itself. One a process; one a node, by the owner lock.

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "agent/config_load.h"
#include "base/status.h"

namespace switchyard::agent {

struct StartOptions {
  // Starts the fabric helper.
  std::vector<std::string> helper_command = {"/proc/self/exe", "fabric-helper"};
  // How long to wait for another agent of this node to end; zero: refuse at once.
  absl::Duration wait_lock = absl::ZeroDuration();
};

class Agent {
 public:
  // The error says which step failed, why, and what to do; what had been started is stopped.
  // kCancelled: SIGTERM or SIGINT, blocked in every thread, came while it waited for the lock.
  [[nodiscard]] static Result<std::unique_ptr<Agent>> Start(const LoadedConfig& config,
                                                            const StartOptions& options);
  ~Agent();

 private:
  class Impl;
  explicit Agent(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Runs an agent until SIGTERM or SIGINT. Returns the exit code: 0 after a clean stop, 1 if it could
// not start. Call before any other thread exists: it blocks those signals for all of them.
int RunAgent(const LoadedConfig& config, const StartOptions& options);

}  // namespace switchyard::agent
