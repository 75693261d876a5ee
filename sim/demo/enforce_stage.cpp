// SPDX-License-Identifier: Apache-2.0
#include "sim/demo/enforce_stage.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace switchyard::sim {
namespace {

constexpr size_t kColumns = 100;

}  // namespace

std::string Wrapped(absl::string_view text, size_t indent) {
  std::string wrapped;
  std::string line;
  for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (!line.empty() && indent + line.size() + 1 + word.size() > kColumns) {
      absl::StrAppend(&wrapped, std::string(indent, ' '), line, "\n");
      line.clear();
    }
    absl::StrAppend(&line, line.empty() ? "" : " ", word);
  }
  return absl::StrCat(wrapped, std::string(indent, ' '), line, "\n");
}

void EnforceStage::Show(absl::string_view what) {
  const std::set<int> active = node.fm().active();
  out << absl::StrFormat("   %-56s  active: %s\n", what,
                         active.empty() ? "none" : absl::StrJoin(active, ", "));
  if (const std::string problem = judge.Problem(active); !problem.empty()) Wrong(problem);
}

void EnforceStage::Quote(absl::string_view message) { out << Wrapped(message, 6); }

void EnforceStage::QuoteEvent(const std::string& event) {
  const Result<std::string> message = node.AwaitEvent(event);
  message.ok() ? Quote(*message) : Wrong(message.status().message());
}

void EnforceStage::Wrong(absl::string_view why) {
  ++wrong;
  Quote(absl::StrCat("WRONG: ", why));
}

void EnforceStage::Placed(char pod, absl::string_view what, const PodStatus& status) {
  const std::set<int> modules = node.ModulesOf(status);
  const std::optional<int> partition = placement.PartitionOf(modules);
  const std::set<int> others = placement.ModulesOf(kSomebodyElse);
  const bool in_the_way = std::any_of(others.begin(), others.end(),
                                      [&](int module) { return modules.contains(module); });
  if (status.admitted && in_the_way) Left(kSomebodyElse);
  if (partition) judge.Has(pod, *partition);
  if (status.admitted) placement.Add(pod, modules);
  Show(absl::StrCat(what, status.admitted ? placement.Describe(modules) : "refused"));
  if (!status.admitted) {
    Quote(status.message);
    return Wrong("it must be admitted");
  }
  if (!partition) Wrong("these are not one partition");
  for (const ContainerResult& container : status.containers) {
    if (container.state == ContainerState::kRunning) continue;
    Wrong(absl::StrCat("its container does not run: ", container.waiting));
  }
}

void EnforceStage::Refused(absl::string_view what, const PodStatus& status,
                           absl::string_view because) {
  Show(absl::StrCat(what, status.admitted ? "admitted" : "refused"));
  if (status.admitted) return Wrong("it must be refused");
  Quote(status.message);
  if (!absl::StrContains(status.message, because)) {
    Wrong(absl::StrCat("the message must say: ", because));
  }
}

void EnforceStage::Left(char who) {
  judge.Left(who);
  placement.Remove(who);
}

}  // namespace switchyard::sim
