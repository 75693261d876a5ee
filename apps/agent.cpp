// SPDX-License-Identifier: Apache-2.0
#include "agent/agent.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "agent/config_values.h"
#include "apps/command.h"
#include "apps/load_config.h"
#include "apps/output.h"

namespace switchyard::apps {
namespace {

// Not a configuration key: it is a property of this one start, and every other subcommand would
// have to pass it over.
Result<absl::Duration> WaitLockOf(const Arguments& arguments) {
  if (!arguments.Has("--wait-lock")) return absl::ZeroDuration();
  const std::string text = arguments.Get("--wait-lock");
  if (text.empty()) return absl::InfiniteDuration();
  const Result<absl::Duration> patience = agent::ParseDuration(text);
  if (!patience.ok()) {
    return UsageStatus(absl::StrCat("--wait-lock: ", patience.status().message()));
  }
  if (*patience == absl::ZeroDuration()) {
    return UsageStatus("--wait-lock=0s does not wait: leave the flag out, or give a longer time");
  }
  return *patience;
}

int Run(const Arguments& arguments) {
  agent::StartOptions options;
  const Result<absl::Duration> wait_lock = WaitLockOf(arguments);
  if (!wait_lock.ok()) return Fail(wait_lock.status());
  options.wait_lock = *wait_lock;
  const Result<agent::LoadedConfig> loaded = LoadConfigOf(arguments);
  if (!loaded.ok()) return Fail(loaded.status());
  return agent::RunAgent(*loaded, options);
}

}  // namespace

Command AgentCommand() {
  Command command;
  command.name = "agent";
  command.summary = "Run the node agent until SIGTERM";
  command.details =
      "Examples:\n"
      "  switchyard agent --config /etc/switchyard/config.yaml\n"
      "  switchyard agent --consumer kata --fabric-mode advise\n"
      "  SWITCHYARD_FABRIC_MODE=advise switchyard agent\n"
      "  switchyard agent --wait-lock             # take over when the running one ends\n"
      "\n"
      "Precedence, lowest first: defaults, the environment of the plugins this agent replaces,\n"
      "the file, SWITCHYARD_* variables, flags. `switchyard config show` says what is in force.";
  command.options = {{"--wait-lock", "[DURATION]",
                      "if another agent holds the node, wait until it ends (1m30s; for ever "
                      "without a duration) instead of refusing to start"}};
  command.has_output = false;
  command.takes_config = true;
  command.run = Run;
  return command;
}

}  // namespace switchyard::apps
