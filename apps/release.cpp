// SPDX-License-Identifier: Apache-2.0
// `switchyard release`: ends a tenancy by hand. The agent does it, and refuses what is held.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "agent/config_values.h"
#include "apps/command.h"
#include "apps/enforce_state.h"
#include "apps/load_config.h"
#include "apps/output.h"

namespace switchyard::apps {
namespace {

// The operator's word on the terminal; without one, --yes must have been given.
Result<bool> Agreed(const std::string& question) {
  if (::isatty(STDIN_FILENO) == 0) {
    return UsageStatus(
        "standard input is no terminal, so nobody can be asked: give --yes to release without a "
        "question");
  }
  std::cout << question << " [y/N] " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  absl::AsciiStrToLower(&answer);
  return answer == "y" || answer == "yes";
}

Result<tenancy::TenancyView> Find(const EnforceState& state, std::uint64_t id) {
  for (const tenancy::TenancyView& view : state.view.tenancies) {
    if (view.record.id == id) return view;
  }
  return absl::NotFoundError(
      absl::StrCat("there is no tenancy ", id, ": `switchyard tenancies` lists them"));
}

std::string Question(const tenancy::TenancyView& view, bool force) {
  return absl::StrCat(TenancyText(view.record), ", partition ",
                      view.partition ? absl::StrCat(*view.partition) : "vanished", ", modules ",
                      view.record.modules.ToString(), ", ",
                      tenancy::TenancyStateName(view.record.state),
                      view.listed ? ", kubelet still lists it" : "", ": release it",
                      force ? " without waiting for the grace time and for kubelet" : "", "?");
}

Result<int> Release(const Arguments& arguments) {
  std::uint64_t id = 0;
  if (!absl::SimpleAtoi(arguments.Get("ID"), &id)) {
    return UsageStatus(absl::StrCat("ID: ", agent::Quote(arguments.Get("ID")),
                                    " is no tenancy id: `switchyard tenancies` lists them"));
  }
  const bool force = arguments.Has("--force");
  ASSIGN_OR_RETURN(const agent::LoadedConfig loaded, LoadConfigOf(arguments));
  ASSIGN_OR_RETURN(const EnforceState state, AskEnforceState(loaded.config));
  ASSIGN_OR_RETURN(const tenancy::TenancyView view, Find(state, id));
  if (!arguments.Has("--yes")) {
    ASSIGN_OR_RETURN(const bool agreed, Agreed(Question(view, force)));
    if (!agreed) return absl::CancelledError("not released");
  }
  RETURN_IF_ERROR(
      AskForChange(loaded.config, absl::StrCat("/v1/release/", id, force ? "/force" : ""))
          .status());
  if (arguments.json) {
    PrintJson({{"released", id}});
  } else {
    Print(absl::StrCat("released ", TenancyText(view.record)));
  }
  return kExitOk;
}

int Run(const Arguments& arguments) {
  const Result<int> done = Release(arguments);
  return done.ok() ? *done : Fail(done.status());
}

}  // namespace

Command ReleaseCommand() {
  Command command;
  command.name = "release";
  command.summary = "Release a tenancy by hand, unless a process has one of its GPUs open";
  command.details =
      "Examples:\n"
      "  switchyard release 7                     # asks first\n"
      "  switchyard release 7 --force --yes\n"
      "Without --force only what the agent would release by itself: neither kubelet nor a process\n"
      "has had it for longer than tenancy.grace. With --force kubelet's word and the grace time\n"
      "don't count: the pod that kubelet still lists loses its partition. A held GPU is never\n"
      "taken away: end its process first (`switchyard holders`). Takes every configuration flag\n"
      "of `switchyard agent`.";
  command.options = {{"ID", "", "the tenancy's id, from `switchyard tenancies`", true},
                     {"--force", "", "without grace time and without kubelet's agreement"},
                     {"--yes", "", "don't ask"}};
  command.takes_config = true;
  command.run = Run;
  return command;
}

}  // namespace switchyard::apps
