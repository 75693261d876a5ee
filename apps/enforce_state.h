// SPDX-License-Identifier: Apache-2.0
#pragma once

// The tenancies of the node: asked of the running agent, or, without one, as the state file has
// them. For operators; what is asked to be done (drain, release, plan) goes to the agent only.

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "agent/config.h"
#include "base/status.h"
#include "fabric/module_set.h"
#include "tenancy/enforce_view.h"

namespace switchyard::apps {

struct EnforceState {
  bool live = false;          // said by the agent just now; else read from the state file
  tenancy::EnforceView view;  // if not live: records only, nothing is known of the fabric
  // Records of the state file that can't be read, one line each.
  std::vector<std::string> lost;
};

// kNotFound: no agent runs and there is no state file. kFailedPrecondition: the agent that runs is
// not in enforce.
[[nodiscard]] Result<EnforceState> ReadEnforceState(const agent::Config& config);

// The same, of the agent only.
[[nodiscard]] Result<EnforceState> AskEnforceState(const agent::Config& config);

// Asks the agent to do something (POST), and for as long as that may take: a change of the fabric
// is bounded by fabric.timeout. Its answer's body.
[[nodiscard]] Result<std::string> AskForChange(const agent::Config& config,
                                               const std::string& target);

// The agent's JSON (GET /v1/tenancies). kInternal names what it lacks.
[[nodiscard]] Result<EnforceState> ParseEnforceState(absl::string_view json);

struct PlannedStep {
  std::string action;
  std::string tenancy;    // empty: of an active partition of nobody
  std::string partition;  // empty: no partition has its modules
  fabric::ModuleSet modules;
  std::string why;
};
// The agent's JSON (POST /v1/reconcile/plan). The same.
[[nodiscard]] Result<std::vector<PlannedStep>> ParsePlan(absl::string_view json);

// "pod default/a"; "not known yet", "claim ...".
[[nodiscard]] std::string OwnerText(const tenancy::TenancyRecord& record);

// "tenancy 3 of pod default/a".
[[nodiscard]] std::string TenancyText(const tenancy::TenancyRecord& record);

}  // namespace switchyard::apps
