// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agent/fabric_hints.h"
#include "apps/doctor.h"
#include "apps/fabric_state.h"
#include "base/host_root.h"
#include "fabric/partition_table.h"
#include "pci/inventory.h"
#include "tenancy/map_sources.h"

namespace switchyard::apps {
namespace {

using tenancy::FabricMode;

// What the agent has in its map or kept of one: it stands in where no source speaks now, such as
// NVML once the GPUs are on vfio. FM's own numbers come with its list.
fabric::ModuleEntries Remembered(const agent::Config& config) {
  fabric::ModuleEntries entries;
  const Result<FabricState> state = ReadFabricState(config);
  if (!state.ok()) return entries;
  for (const auto& [address, entry] : state->map) {
    if (entry.sources != std::vector<std::string>{"fm"}) entries.emplace(address, entry.module);
  }
  return entries;
}

fabric::ModuleMap CheckMap(const agent::Config& config, fabric::FabricReader& reader,
                           Findings& findings) {
  tenancy::MapSources sources = tenancy::ReadMapSources(config.fabric.module_map, &reader);
  if (!sources.unusable_file) sources.input.remembered = Remembered(config);
  fabric::ModuleMap map = fabric::ModuleMap::Join(sources.input);
  std::vector<std::string> errors = sources.errors;
  errors.insert(errors.end(), map.errors().begin(), map.errors().end());
  for (const std::string& error : errors) {
    findings.push_back({"module map", Verdict::kError, error,
                        "correct the entry; `switchyard mapping show` names each source"});
  }
  if (!errors.empty()) return map;
  const bool is_needed = config.fabric.mode != FabricMode::kOff;
  const bool is_missing = is_needed && map.entries().empty();
  findings.push_back(
      {"module map", is_missing ? Verdict::kWarning : Verdict::kOk,
       absl::StrCat(map.entries().size(), " GPUs have a module id"),
       is_missing
           ? "run `switchyard mapping create` while the GPUs are on the nvidia driver, or "
             "`switchyard mapping set ADDRESS MODULE` (A100 and older: Fabric Manager says it)"
           : ""});
  return map;
}

// Without a fabric an absent library or daemon is normal.
void ReportNoList(const agent::Config& config, const Status& status, Findings& findings) {
  const bool is_off = config.fabric.mode == FabricMode::kOff;
  const bool no_library = absl::IsNotFound(status);
  const absl::string_view check = no_library ? "libnvfm" : "fabric manager";
  if (is_off && (no_library || absl::IsUnavailable(status))) {
    findings.push_back({check, Verdict::kOk,
                        no_library ? "not on this node, and fabric.mode is off"
                                   : "does not answer, and fabric.mode is off",
                        ""});
    return;
  }
  const absl::string_view fix =
      no_library ? "install libnvfm of Fabric Manager's version, or set fabric.library"
                 : "see that Fabric Manager runs in shared mode (FABRIC_MODE=1) and that "
                   "fabric.address is its command endpoint";
  findings.push_back({check, is_off ? Verdict::kWarning : Verdict::kError,
                      std::string(status.message()), std::string(fix)});
}

// GPUs of the table that no module id leads to: their partitions are never chosen.
void CheckTable(const fabric::PartitionTable& table, const fabric::ModuleMap& map,
                Findings& findings) {
  std::vector<int> incomplete;
  int active = 0;
  for (const fabric::Partition& partition : table.partitions) {
    if (!partition.complete) incomplete.push_back(partition.id);
    if (partition.active) ++active;
  }
  findings.push_back({"partitions", Verdict::kOk,
                      absl::StrCat(table.partitions.size(), " partitions, ", active, " active"),
                      ""});
  if (!incomplete.empty()) {
    findings.push_back({"partitions", Verdict::kWarning,
                        absl::StrCat("partitions ", absl::StrJoin(incomplete, ", "),
                                     " name GPUs without a module id and are never chosen"),
                        "complete the module map: `switchyard mapping show`"});
  }
  std::vector<int> unmapped;
  for (const fabric::ModuleId module : table.modules.ToVector()) {
    if (!map.AddressOf(module).has_value()) unmapped.push_back(module);
  }
  if (unmapped.empty()) return;
  findings.push_back({"module map", Verdict::kWarning,
                      absl::StrCat("no GPU is known for modules ", absl::StrJoin(unmapped, ", "),
                                   " of the table: their partitions are never chosen"),
                      "`switchyard mapping create` or `switchyard mapping set ADDRESS MODULE`"});
}

void CheckModeOff(const agent::Config& config, bool reachable, Findings& findings) {
  if (config.fabric.mode != FabricMode::kOff) return;
  std::vector<std::string> hints;
  const HostRoot root(config.paths.host_root);
  if (const Result<pci::Inventory> inventory = pci::Scan(root); inventory.ok()) {
    hints = agent::FabricHints(root, *inventory);
  }
  if (reachable) hints.push_back("Fabric Manager answers");
  if (hints.empty()) return;
  findings.push_back(
      {"fabric mode", Verdict::kWarning,
       absl::StrCat("fabric.mode is off on a node with a fabric: ", absl::StrJoin(hints, "; "),
                    ". GPUs are picked without regard to partitions"),
       "set fabric.mode to advise"});
}

}  // namespace

void CheckFabric(const agent::Config& config, fabric::FabricReader& reader, Findings& findings) {
  fabric::ModuleMap map = CheckMap(config, reader, findings);
  const Result<fabric::FabricList> list = reader.ReadPartitions();
  if (list.ok()) {
    findings.push_back({"fabric manager", Verdict::kOk,
                        absl::StrCat("answers on ", config.fabric.address.ToString()), ""});
    fabric::ModuleMap::Input with_fabric =
        tenancy::ReadMapSources(config.fabric.module_map, nullptr).input;
    with_fabric.fabric_manager = fabric::EntriesOf(*list, with_fabric);
    if (!with_fabric.fabric_manager.empty()) map = fabric::ModuleMap::Join(with_fabric);
    CheckTable(fabric::MakeTable(*list, map), map, findings);
  } else {
    ReportNoList(config, list.status(), findings);
  }
  CheckModeOff(config, list.ok(), findings);
}

}  // namespace switchyard::apps
