// SPDX-License-Identifier: Apache-2.0
// `switchyard drain`: no new tenancies on this node, and when it is empty.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agent/config_values.h"
#include "apps/command.h"
#include "apps/enforce_state.h"
#include "apps/load_config.h"
#include "apps/output.h"
#include "base/clock.h"

namespace switchyard::apps {
namespace {

// The agent tells nobody when a tenancy ends: it is asked. One answer is a copy of what it has in
// memory.
constexpr absl::Duration kAskAgain = absl::Seconds(1);

Result<absl::Duration> PatienceOf(const Arguments& arguments) {
  if (!arguments.Has("--wait")) return absl::ZeroDuration();
  const std::string text = arguments.Get("--wait");
  if (text.empty()) return absl::InfiniteDuration();
  const Result<absl::Duration> patience = agent::ParseDuration(text);
  if (!patience.ok()) return UsageStatus(absl::StrCat("--wait: ", patience.status().message()));
  return *patience;
}

std::string Left(const EnforceState& state) {
  return absl::StrJoin(state.view.tenancies, ", ", [](std::string* out, const auto& view) {
    absl::StrAppend(out, TenancyText(view.record));
  });
}

void Report(const Arguments& arguments, const EnforceState& state) {
  const std::size_t left = state.view.tenancies.size();
  if (arguments.json) {
    nlohmann::ordered_json ids = nlohmann::ordered_json::array();
    for (const tenancy::TenancyView& view : state.view.tenancies) ids.push_back(view.record.id);
    PrintJson({{"draining", state.view.draining}, {"empty", left == 0}, {"tenancies", ids}});
    return;
  }
  if (!state.view.draining) {
    Print("not draining: new tenancies can begin");
  } else if (left == 0) {
    Print("draining, and the node is empty: no tenancy is left");
  } else {
    Print(absl::StrCat("draining: no new tenancies; ", left, left == 1 ? " is" : " are",
                       " left: ", Left(state)));
  }
}

Result<int> Drain(const Arguments& arguments) {
  const bool off = arguments.Has("--off");
  if (off && arguments.Has("--wait"))
    return UsageStatus("--wait waits for a drain: not with --off");
  ASSIGN_OR_RETURN(const absl::Duration patience, PatienceOf(arguments));
  ASSIGN_OR_RETURN(const agent::LoadedConfig loaded, LoadConfigOf(arguments));
  ASSIGN_OR_RETURN(const std::string answer,
                   AskForChange(loaded.config, off ? "/v1/drain/off" : "/v1/drain/on"));
  ASSIGN_OR_RETURN(EnforceState state, ParseEnforceState(answer));
  RealClock clock;
  const absl::Duration start = clock.Monotonic();
  Wakeup never;
  while (arguments.Has("--wait") && !state.view.tenancies.empty()) {
    const absl::Duration left = patience - (clock.Monotonic() - start);
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError(absl::StrCat("the node is not empty after ",
                                                      absl::FormatDuration(patience), ": ",
                                                      Left(state), "; it goes on draining"));
    }
    never.WaitFor(clock, std::min(left, kAskAgain));
    ASSIGN_OR_RETURN(state, AskEnforceState(loaded.config));
    if (!state.view.draining) {
      return absl::AbortedError("the node is not draining any more: another operator ended that");
    }
  }
  Report(arguments, state);
  return kExitOk;
}

int Run(const Arguments& arguments) {
  const Result<int> done = Drain(arguments);
  return done.ok() ? *done : Fail(done.status());
}

}  // namespace

Command DrainCommand() {
  Command command;
  command.name = "drain";
  command.summary = "Let no new tenancy begin, and say when the node is empty";
  command.details =
      "Examples:\n"
      "  switchyard drain                         # says what is left\n"
      "  switchyard drain --wait=30m              # until nothing is left\n"
      "  switchyard drain --off\n"
      "What runs is left alone. Lasts until --off, over restarts of agent and node. Cordon the\n"
      "node too, so that no pod is sent there. Exit code 1: something is left after --wait's time. "
      "Takes every configuration\n"
      "flag of `switchyard agent`.";
  command.options = {
      {"--off", "", "let new tenancies begin again"},
      {"--wait", "[DURATION]", "until no tenancy is left (1m30s; for ever without a duration)"}};
  command.takes_config = true;
  command.run = Run;
  return command;
}

}  // namespace switchyard::apps
