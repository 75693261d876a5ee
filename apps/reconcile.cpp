// SPDX-License-Identifier: Apache-2.0
// `switchyard reconcile --dry-run`: what the agent's next pass would do, and why.
#include <nlohmann/json.hpp>

#include "apps/command.h"
#include "apps/enforce_state.h"
#include "apps/load_config.h"
#include "apps/output.h"

namespace switchyard::apps {
namespace {

using nlohmann::ordered_json;

Result<std::vector<PlannedStep>> Plan(const Arguments& arguments, std::string& answer) {
  if (!arguments.Has("--dry-run")) {
    return UsageStatus(
        "the agent reconciles by itself, every 10 seconds: give --dry-run to see what it would "
        "do");
  }
  ASSIGN_OR_RETURN(const agent::LoadedConfig loaded, LoadConfigOf(arguments));
  ASSIGN_OR_RETURN(answer, AskForChange(loaded.config, "/v1/reconcile/plan"));
  return ParsePlan(answer);
}

int Run(const Arguments& arguments) {
  std::string answer;
  const Result<std::vector<PlannedStep>> plan = Plan(arguments, answer);
  if (!plan.ok()) return Fail(plan.status());
  if (arguments.json) {
    PrintJson(ordered_json::parse(answer));
    return kExitOk;
  }
  Table table({"ACTION", "TENANCY", "PARTITION", "MODULES", "WHY"});
  for (const PlannedStep& step : *plan) {
    table.Add({step.action, step.tenancy, step.partition, step.modules.ToString(), step.why});
  }
  Print(plan->empty() ? "nothing to do: no tenancy and no active partition" : table.ToString());
  return kExitOk;
}

}  // namespace

Command ReconcileCommand() {
  Command command;
  command.name = "reconcile";
  command.summary = "Show what the agent would release, adopt or activate now, and why";
  command.details =
      "Examples:\n"
      "  switchyard reconcile --dry-run\n"
      "  switchyard reconcile --dry-run -o json\n"
      "Looks at the processes of now, at kubelet's and Fabric Manager's last lists, and changes\n"
      "nothing. Takes every configuration flag of `switchyard agent`.";
  command.options = {{"--dry-run", "", "change nothing (the only way there is)"}};
  command.takes_config = true;
  command.run = Run;
  return command;
}

}  // namespace switchyard::apps
