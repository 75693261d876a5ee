// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a restart of Fabric Manager means here, judged anew each time: the operator may change its
// configuration, or start it with --restart, while the agent runs. What can't be told is reported
// (event restart_kind_unknown), once until it is something else, and taken for cold: a list sent to
// a cold Fabric Manager is undefined. One thread at a time.

#include <string>

#include "base/event.h"
#include "base/host_root.h"
#include "fabric/restart_kind.h"

namespace switchyard::agent {

class RestartJudge {
 public:
  // `config`: Fabric Manager's, as FindRestartKind takes it. `events` is borrowed.
  RestartJudge(fabric::RestartSetting setting, std::string config, HostRoot root, EventSink& events)
      : setting_(setting), config_(std::move(config)), root_(std::move(root)), events_(events) {}

  // Reads one file and, if that does not say so, the command lines in /proc.
  [[nodiscard]] bool IsWarm();

 private:
  const fabric::RestartSetting setting_;
  const std::string config_;
  const HostRoot root_;
  EventSink& events_;
  std::string reported_;  // why the last one could not be told; empty: it could
};

}  // namespace switchyard::agent
