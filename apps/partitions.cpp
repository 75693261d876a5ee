// SPDX-License-Identifier: Apache-2.0
// `switchyard partitions`: the partition table with its state.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "apps/command.h"
#include "apps/enforce_state.h"
#include "apps/fabric_state.h"
#include "apps/load_config.h"
#include "apps/output.h"
#include "base/clock.h"

namespace switchyard::apps {
namespace {

using nlohmann::ordered_json;

// What a table row and a JSON entry need of `enforce`; null elsewhere.
const tenancy::PartitionView* ViewOf(const EnforceState* enforced, int id) {
  if (enforced == nullptr) return nullptr;
  const auto& partitions = enforced->view.partitions;
  const auto found = std::find_if(partitions.begin(), partitions.end(),
                                  [id](const auto& partition) { return partition.id == id; });
  return found == partitions.end() ? nullptr : &*found;
}

// In enforce: whose it is, or what is in the way of a request for it.
std::string EnforcedUse(const EnforceState& enforced, const tenancy::PartitionView& view,
                        absl::Time now) {
  if (view.tenancy) {
    for (const tenancy::TenancyView& one : enforced.view.tenancies) {
      if (one.record.id == *view.tenancy) return TenancyText(one.record);
    }
  }
  std::vector<std::string> in_the_way;
  in_the_way.reserve(view.blocked_by_tenancies.size() + view.blocked_by_partitions.size() + 1);
  for (const std::uint64_t id : view.blocked_by_tenancies)
    in_the_way.push_back(absl::StrCat("tenancy ", id));
  for (const int id : view.blocked_by_partitions)
    in_the_way.push_back(absl::StrCat("foreign partition ", id));
  if (view.modules.Overlaps(enforced.view.dirty)) in_the_way.emplace_back("the dirty fabric");
  std::string use =
      in_the_way.empty() ? "" : absl::StrCat("blocked by ", absl::StrJoin(in_the_way, ", "));
  if (!view.foreign) return use.empty() ? "free" : use;
  std::string foreign = "foreign";
  if (view.stale_since) {
    absl::StrAppend(&foreign, ", unused for ",
                    absl::FormatDuration(absl::Trunc(now - *view.stale_since, absl::Seconds(1))));
  }
  return use.empty() ? foreign : absl::StrCat(foreign, ", ", use);
}

// "free" or "busy", where the agent says who holds what; else "unknown".
absl::string_view Use(const FabricState& state, const fabric::Partition& partition) {
  if (!state.live) return "unknown";
  return partition.modules.Overlaps(state.busy) ? "busy" : "free";
}

std::map<fabric::ModuleId, std::string> AddressOfModule(const FabricState& state) {
  std::map<fabric::ModuleId, std::string> addresses;
  for (const auto& [address, entry] : state.map) addresses[entry.module] = address.ToString();
  return addresses;
}

// In the order of the modules; "" for one without an address.
std::vector<std::string> Devices(const std::map<fabric::ModuleId, std::string>& addresses,
                                 const fabric::Partition& partition) {
  std::vector<std::string> devices;
  for (const fabric::ModuleId module : partition.modules.ToVector()) {
    const auto it = addresses.find(module);
    devices.push_back(it == addresses.end() ? "" : it->second);
  }
  return devices;
}

void PrintAsJson(const FabricState& state, const EnforceState* enforced) {
  const auto addresses = AddressOfModule(state);
  ordered_json partitions = ordered_json::array();
  for (const fabric::Partition& partition : state.table.partitions) {
    ordered_json devices = ordered_json::array();
    for (const std::string& device : Devices(addresses, partition)) {
      devices.push_back(device.empty() ? ordered_json(nullptr) : ordered_json(device));
    }
    partitions.push_back({{"id", partition.id},
                          {"active", partition.active},
                          {"use", std::string(Use(state, partition))},
                          {"modules", partition.modules.ToVector()},
                          {"devices", devices},
                          {"complete", partition.complete}});
    const tenancy::PartitionView* view = ViewOf(enforced, partition.id);
    if (view == nullptr) continue;
    ordered_json& entry = partitions.back();
    entry["tenancy"] = view->tenancy ? ordered_json(*view->tenancy) : ordered_json(nullptr);
    entry["foreign"] = view->foreign;
    entry["staleSince"] = view->stale_since
                              ? ordered_json(absl::FormatTime(absl::RFC3339_sec, *view->stale_since,
                                                              absl::UTCTimeZone()))
                              : ordered_json(nullptr);
    entry["blockedByTenancies"] = view->blocked_by_tenancies;
    entry["blockedByPartitions"] = view->blocked_by_partitions;
    entry["dirty"] = view->modules.Overlaps(enforced->view.dirty);
  }
  const ordered_json read_at =
      state.known
          ? ordered_json(absl::FormatTime(absl::RFC3339_sec, state.read_at, absl::UTCTimeZone()))
          : ordered_json(nullptr);
  PrintJson({{"live", state.live},
             {"mode", state.mode},
             {"known", state.known},
             {"up", state.up},
             {"error", state.error},
             {"readAt", read_at},
             {"partitions", partitions}});
}

void PrintAsTable(const FabricState& state, const EnforceState* enforced) {
  RealClock clock;
  Print(absl::StrCat("fabric mode ", state.mode, "; ", AgeText(state, clock.Now())));
  if (!state.error.empty()) Print(absl::StrCat("Fabric Manager: ", state.error));
  if (enforced != nullptr && enforced->view.draining)
    Print("the node is being drained: no new tenancies");
  if (!state.known) return;
  const auto addresses = AddressOfModule(state);
  Table table({"PARTITION", "GPUS", "ACTIVE", "USE", "MODULES", "DEVICES"});
  for (const fabric::Partition& partition : state.table.partitions) {
    const std::string devices = absl::StrJoin(
        Devices(addresses, partition), ",", [](std::string* out, const std::string& device) {
          absl::StrAppend(out, device.empty() ? "(unmapped)" : device);
        });
    const tenancy::PartitionView* view = ViewOf(enforced, partition.id);
    const std::string use = view != nullptr && partition.complete
                                ? EnforcedUse(*enforced, *view, clock.Now())
                                : std::string(Use(state, partition));
    table.Add({absl::StrCat(partition.id), absl::StrCat(partition.modules.size()),
               partition.active ? "yes" : "no", use,
               absl::StrCat(partition.modules.ToString(), partition.complete ? "" : ",?"),
               devices});
  }
  Print(table.ToString());
}

int Run(const Arguments& arguments) {
  const Result<agent::LoadedConfig> loaded = LoadConfigOf(arguments);
  if (!loaded.ok()) return Fail(loaded.status());
  const Result<FabricState> state = ReadFabricState(loaded->config);
  if (!state.ok()) return Fail(state.status());
  std::optional<EnforceState> enforced;
  if (state->live && state->mode == "enforce") {
    Result<EnforceState> asked = AskEnforceState(loaded->config);
    if (!asked.ok()) return Fail(asked.status());
    enforced = *std::move(asked);
  }
  const EnforceState* const view = enforced ? &*enforced : nullptr;
  if (arguments.json) {
    PrintAsJson(*state, view);
  } else {
    PrintAsTable(*state, view);
  }
  return kExitOk;
}

}  // namespace

Command PartitionsCommand() {
  Command command;
  command.name = "partitions";
  command.summary =
      "Show Fabric Manager's partitions: members, active or not, whose, and what blocks them";
  command.details =
      "Examples:\n"
      "  switchyard partitions\n"
      "  switchyard partitions -o json\n"
      "USE in enforce: whose it is, foreign (active, of no tenancy), or what is in the way of it.\n"
      "Asks the agent; without one, shows what it remembered and how old that is. Takes every\n"
      "configuration flag of `switchyard agent`.";
  command.takes_config = true;
  command.run = Run;
  return command;
}

}  // namespace switchyard::apps
