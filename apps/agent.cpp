// SPDX-License-Identifier: Apache-2.0
#include "agent/agent.h"

#include "apps/command.h"
#include "apps/load_config.h"
#include "apps/output.h"

namespace switchyard::apps {
namespace {

int Run(const Arguments& arguments) {
  const Result<agent::LoadedConfig> loaded = LoadConfigOf(arguments);
  if (!loaded.ok()) return Fail(loaded.status());
  return agent::RunAgent(*loaded);
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
      "\n"
      "Precedence, lowest first: defaults, the environment of the plugins this agent replaces,\n"
      "the file, SWITCHYARD_* variables, flags. `switchyard config show` says what is in force.";
  command.has_output = false;
  command.takes_config = true;
  command.run = Run;
  return command;
}

}  // namespace switchyard::apps
