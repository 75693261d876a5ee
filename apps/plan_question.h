// SPDX-License-Identifier: Apache-2.0
#pragma once

// What `switchyard plan` asks the planner, from files (offline) or from the agent (live).

#include <map>
#include <optional>
#include <string>

#include "agent/config.h"
#include "apps/command.h"
#include "base/pci_address.h"
#include "base/status.h"
#include "fabric/partition_table.h"
#include "fabric/planner.h"

namespace switchyard::apps {

struct PlanQuestion {
  fabric::PartitionTable table;
  fabric::PlanRequest request;  // its table is set by whoever calls the planner
  // Module -> GPU; absent without a module map.
  std::optional<std::map<fabric::ModuleId, PciAddress>> addresses;
  std::string note;  // how sure this is: "read 3s ago"; empty offline
};

// From --board and --map: the answer is advise's. What is not free is busy.
[[nodiscard]] Result<PlanQuestion> AskOffline(const Arguments& arguments);

// From the agent, else from what it remembered. What is left out of the options is as it is now.
[[nodiscard]] Result<PlanQuestion> AskLive(const Arguments& arguments, const agent::Config& config);

}  // namespace switchyard::apps
