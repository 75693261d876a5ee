// SPDX-License-Identifier: Apache-2.0
#include "apps/doctor.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "apps/command.h"
#include "apps/fabric_helper.h"
#include "apps/load_config.h"
#include "apps/output.h"

namespace switchyard::apps {
namespace {

using nlohmann::ordered_json;

absl::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kWarning:
      return "warning";
    case Verdict::kError:
      return "error";
  }
  return "?";
}

void PrintAsJson(const Findings& findings) {
  ordered_json list = ordered_json::array();
  for (const Finding& finding : findings) {
    list.push_back(
        {{"check", std::string(finding.check)},
         {"status", std::string(VerdictName(finding.verdict))},
         {"message", finding.message},
         {"fix", finding.fix.empty() ? ordered_json(nullptr) : ordered_json(finding.fix)}});
  }
  PrintJson({{"checks", list}});
}

void PrintAsTable(const Findings& findings) {
  Table table({"STATUS", "CHECK", "FOUND"});
  for (const Finding& finding : findings) {
    table.Add(
        {std::string(VerdictName(finding.verdict)), std::string(finding.check), finding.message});
    if (!finding.fix.empty()) table.Add({" ", " ", absl::StrCat("to do: ", finding.fix)});
  }
  Print(table.ToString());
}

int Run(const Arguments& arguments) {
  Findings findings;
  const Result<agent::LoadedConfig> loaded = LoadConfigOf(arguments);
  if (!loaded.ok()) return Fail(loaded.status());
  fabric::FabricHelper helper(HelperOptionsOf(loaded->config));
  CheckHost(loaded->config, findings);
  CheckKubelet(loaded->config, findings);
  CheckCluster(loaded->config, findings);
  CheckFabric(loaded->config, helper, findings);
  CheckAgent(loaded->config, findings);
  for (const std::string& note : loaded->notes) {
    findings.push_back({"configuration", Verdict::kOk, note, ""});
  }
  if (arguments.json) {
    PrintAsJson(findings);
  } else {
    PrintAsTable(findings);
  }
  const bool failed = std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.verdict == Verdict::kError;
  });
  return failed ? kExitFailed : kExitOk;
}

}  // namespace

Command DoctorCommand() {
  Command command;
  command.name = "doctor";
  command.summary = "Check everything the agent needs on this node, and say how to put it right";
  command.details =
      "Examples:\n"
      "  switchyard doctor\n"
      "  switchyard doctor --config /etc/switchyard/config.yaml -o json\n"
      "Changes nothing; one connection to Fabric Manager, one to the API server. Takes every "
      "configuration flag of\n"
      "`switchyard agent`. Exit code 1 if any check is an error.";
  command.takes_config = true;
  command.run = Run;
  return command;
}

}  // namespace switchyard::apps
