// SPDX-License-Identifier: Apache-2.0
// `switchyard journal verify` and `journal export`: the tenancies' record in the state file, for
// support. Read-only; the agent may run.
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "apps/command.h"
#include "apps/load_config.h"
#include "apps/output.h"
#include "store/store.h"
#include "tenancy/store_journal.h"

namespace switchyard::apps {
namespace {

Result<std::unique_ptr<store::Store>> OpenState(const Arguments& arguments) {
  ASSIGN_OR_RETURN(const agent::LoadedConfig loaded, LoadConfigOf(arguments));
  const std::string& folder = loaded.config.paths.state;
  Result<store::Store::Opened> opened = store::Store::Open(folder, store::Store::Mode::kReadOnly);
  if (absl::IsNotFound(opened.status())) {
    return absl::NotFoundError(absl::StrCat("there is no state file in ", folder,
                                            ": give the agent's --config, or its --paths-state"));
  }
  RETURN_IF_ERROR(opened.status());
  return std::move(opened->store);
}

int RunVerify(const Arguments& arguments) {
  const Result<std::unique_ptr<store::Store>> state = OpenState(arguments);
  if (!state.ok()) return Fail(state.status());
  const Result<std::vector<std::string>> problems = tenancy::VerifyJournal(**state);
  if (!problems.ok()) return Fail(problems.status());
  if (arguments.json) {
    PrintJson({{"sound", problems->empty()}, {"problems", *problems}});
  } else if (problems->empty()) {
    Print("the journal is sound");
  }
  for (const std::string& problem : *problems) (void)Fail(absl::DataLossError(problem));
  return problems->empty() ? kExitOk : kExitFailed;
}

int RunExport(const Arguments& arguments) {
  const Result<std::unique_ptr<store::Store>> state = OpenState(arguments);
  if (!state.ok()) return Fail(state.status());
  const Result<std::string> text = tenancy::ExportJournal(**state);
  if (!text.ok()) return Fail(text.status());
  Print(*text);
  return kExitOk;
}

}  // namespace

Command JournalVerifyCommand() {
  Command command;
  command.name = "journal verify";
  command.summary = "Check every record of the journal, and that none contradicts another";
  command.details =
      "Examples:\n"
      "  switchyard journal verify\n"
      "  switchyard journal verify -o json\n"
      "Reads the state file; needs no agent and changes nothing. Exit code 1: something is wrong,\n"
      "one line each on standard error. Takes every configuration flag of `switchyard agent`.";
  command.takes_config = true;
  command.run = RunVerify;
  return command;
}

Command JournalExportCommand() {
  Command command;
  command.name = "journal export";
  command.summary = "Print the journal as it stands, as JSON";
  command.details =
      "Examples:\n"
      "  switchyard journal export > journal.json\n"
      "Every record as the text it is stored as, damaged ones too. Names of pods and PCI "
      "addresses\n"
      "are in it. Takes every configuration flag of `switchyard agent`.";
  command.has_output = false;
  command.takes_config = true;
  command.run = RunExport;
  return command;
}

}  // namespace switchyard::apps
