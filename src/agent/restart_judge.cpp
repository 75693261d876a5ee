// SPDX-License-Identifier: Apache-2.0
#include "agent/restart_judge.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace switchyard::agent {

bool RestartJudge::IsWarm() {
  const Result<fabric::RestartKind> kind = fabric::FindRestartKind(setting_, config_, root_);
  std::string problem(kind.status().message());
  const bool is_new = std::exchange(reported_, problem) != problem;
  if (kind.ok()) return kind->warm;
  if (is_new) {
    events_.Report({"restart_kind_unknown",
                    Severity::kWarning,
                    absl::StrCat("what a restart of Fabric Manager means here can't be told: ",
                                 problem, "; taken for cold, set fabric.restart"),
                    {}});
  }
  return false;
}

}  // namespace switchyard::agent
