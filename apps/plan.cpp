// SPDX-License-Identifier: Apache-2.0
// `switchyard plan`: which partition a request would get, and why.
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "apps/command.h"
#include "apps/load_config.h"
#include "apps/output.h"
#include "apps/plan_question.h"

namespace switchyard::apps {
namespace {

using fabric::Candidate;
using nlohmann::ordered_json;

struct Answer {
  std::vector<Candidate> candidates;
  std::string reason;
};

Answer AskPlanner(const fabric::PlanRequest& request) {
  Answer answer{fabric::Rank(request), ""};
  answer.reason = answer.candidates.empty() ? fabric::WhyNone(request)
                                            : fabric::Why(request, answer.candidates.front());
  return answer;
}

// In the order of the modules. A module without an address is never a candidate's.
std::vector<std::string> Addresses(const PlanQuestion& question, const Candidate& candidate) {
  std::vector<std::string> addresses;
  for (const fabric::ModuleId module : candidate.partition->modules.ToVector()) {
    const auto it = question.addresses->find(module);
    if (it != question.addresses->end()) addresses.push_back(it->second.ToString());
  }
  return addresses;
}

ordered_json ChoiceJson(const PlanQuestion& question, const Answer& answer) {
  if (answer.candidates.empty()) return nullptr;
  const Candidate& best = answer.candidates.front();
  ordered_json choice = {{"partition", best.partition->id},
                         {"modules", best.partition->modules.ToVector()}};
  if (question.addresses.has_value()) choice["devices"] = Addresses(question, best);
  return choice;
}

void PrintAsJson(const PlanQuestion& question, const Answer& answer) {
  ordered_json candidates = ordered_json::array();
  for (const Candidate& candidate : answer.candidates) {
    candidates.push_back({{"partition", candidate.partition->id},
                          {"modules", candidate.partition->modules.ToVector()},
                          {"why", fabric::Why(question.request, candidate)}});
  }
  PrintJson({{"choice", ChoiceJson(question, answer)},
             {"reason", answer.reason},
             {"candidates", candidates}});
}

void PrintAsTable(const PlanQuestion& question, const Answer& answer, bool explain) {
  if (!question.note.empty()) Print(absl::StrCat("partition list: ", question.note));
  if (answer.candidates.empty()) {
    Print(absl::StrCat("no partition: ", answer.reason));
    return;
  }
  const Candidate& best = answer.candidates.front();
  Print(absl::StrCat("partition ", best.partition->id, ": modules ",
                     best.partition->modules.ToString()));
  if (question.addresses.has_value()) {
    Print(absl::StrCat("devices ", absl::StrJoin(Addresses(question, best), ",")));
  }
  Print(absl::StrCat("because: ", answer.reason));
  if (!explain) return;
  Table table({"RANK", "PARTITION", "MODULES", "WHY"});
  for (size_t i = 0; i < answer.candidates.size(); ++i) {
    const Candidate& candidate = answer.candidates[i];
    table.Add({absl::StrCat(i + 1), absl::StrCat(candidate.partition->id),
               candidate.partition->modules.ToString(), fabric::Why(question.request, candidate)});
  }
  Print(table.ToString());
}

Result<PlanQuestion> Ask(const Arguments& arguments) {
  if (arguments.Has("--board")) return AskOffline(arguments);
  if (arguments.Has("--map")) {
    return UsageStatus("--map: needs --board: a live plan uses the agent's map");
  }
  ASSIGN_OR_RETURN(const agent::LoadedConfig loaded, LoadConfigOf(arguments));
  return AskLive(arguments, loaded.config);
}

int Run(const Arguments& arguments) {
  Result<PlanQuestion> question = Ask(arguments);
  if (!question.ok()) return Fail(question.status());
  question->request.table = &question->table;
  const Answer answer = AskPlanner(question->request);
  if (arguments.json) {
    PrintAsJson(*question, answer);
  } else {
    PrintAsTable(*question, answer, arguments.Has("--explain"));
  }
  return kExitOk;
}

}  // namespace

Command PlanCommand() {
  Command command;
  command.name = "plan";
  command.summary = "Say which partition a request would get, and why";
  command.details =
      "Examples:\n"
      "  switchyard plan --size 2                          # on this node, as things are now\n"
      "  switchyard plan --size 2 --board hgx-h100.json --free 1,2,3,4,5,6 --active 5 --explain\n"
      "  switchyard plan --size 4 --board hgx-h100.json --map module-map.json \\\n"
      "      --must-include 0000:0f:00.0 -o json\n"
      "\n"
      "With --board nothing of this node is read: GPUs are free unless --free says which are, the\n"
      "policy is pack unless --policy says, and what is not free counts as busy. Without it the\n"
      "agent is asked, or, if none runs, its last state is read; the configuration flags of\n"
      "`switchyard agent` are taken too. Exit code 0 whether or not something fits.";
  command.options = {
      {"--size", "N", "how many GPUs", true},
      {"--must-include", "LIST", "GPUs that must be among them: module ids or addresses"},
      {"--free", "LIST", "GPUs that are free: module ids or addresses; default all"},
      {"--active", "LIST", "ids of the active partitions"},
      {"--policy", "POLICY", "pack or lowest-id"},
      {"--board", "FILE", "plan offline, over a board's partition table"},
      {"--map", "FILE", "module map of that board, for addresses"},
      {"--explain", "", "show every candidate in rank order, and why"}};
  command.takes_config = true;
  command.run = Run;
  return command;
}

}  // namespace switchyard::apps
