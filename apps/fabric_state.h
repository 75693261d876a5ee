// SPDX-License-Identifier: Apache-2.0
#pragma once

// What is known of the fabric: asked of the running agent, or, without one, as it was remembered
// last. For the subcommands that only read.

#include <array>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "agent/config.h"
#include "base/pci_address.h"
#include "base/status.h"
#include "fabric/module_map.h"
#include "fabric/module_set.h"
#include "fabric/partition_table.h"
#include "fabric/planner.h"

namespace switchyard::apps {

struct MapEntry {
  fabric::ModuleId module = 0;
  std::vector<std::string> sources;  // "file", "nvml", "fm", "remembered"
  std::string origin;                // the file
};

struct FabricState {
  bool live = false;  // said by the agent just now; else remembered
  std::string mode;   // "off", "advise"
  bool known = false;
  bool up = false;
  std::string error;   // why Fabric Manager could not be read
  absl::Time read_at;  // of the partition list
  fabric::PartitionTable table;
  std::map<PciAddress, MapEntry> map;
  std::vector<std::string> map_errors;
  fabric::ModuleSet busy;    // by kubelet's and the agent's word; empty if not live
  fabric::ModuleSet usable;  // mapped to a GPU that a virtual machine could take now
  std::array<int, fabric::kMaxModule + 1> numa_node = fabric::PlanRequest::UnknownNodes();
};

[[nodiscard]] std::map<PciAddress, MapEntry> MapOf(const fabric::ModuleMap& map);

// kNotFound: no agent runs and nothing is remembered.
[[nodiscard]] Result<FabricState> ReadFabricState(const agent::Config& config);

// The agent's JSON (GET /v1/fabric). kInternal names what it lacks.
[[nodiscard]] Result<FabricState> ParseFabricState(absl::string_view json);

// "as Fabric Manager said 3m ago", "remembered, 2h old".
[[nodiscard]] std::string AgeText(const FabricState& state, absl::Time now);

}  // namespace switchyard::apps
