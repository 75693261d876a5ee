// SPDX-License-Identifier: Apache-2.0
// `switchyard partitions`: the partition table with its state.
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "apps/command.h"
#include "apps/fabric_state.h"
#include "apps/load_config.h"
#include "apps/output.h"
#include "base/clock.h"

namespace switchyard::apps {
namespace {

using nlohmann::ordered_json;

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

void PrintAsJson(const FabricState& state) {
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

void PrintAsTable(const FabricState& state) {
  RealClock clock;
  Print(absl::StrCat("fabric mode ", state.mode, "; ", AgeText(state, clock.Now())));
  if (!state.error.empty()) Print(absl::StrCat("Fabric Manager: ", state.error));
  if (!state.known) return;
  const auto addresses = AddressOfModule(state);
  Table table({"PARTITION", "GPUS", "ACTIVE", "USE", "MODULES", "DEVICES"});
  for (const fabric::Partition& partition : state.table.partitions) {
    const std::string devices = absl::StrJoin(
        Devices(addresses, partition), ",", [](std::string* out, const std::string& device) {
          absl::StrAppend(out, device.empty() ? "(unmapped)" : device);
        });
    table.Add({absl::StrCat(partition.id), absl::StrCat(partition.modules.size()),
               partition.active ? "yes" : "no", std::string(Use(state, partition)),
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
  if (arguments.json) {
    PrintAsJson(*state);
  } else {
    PrintAsTable(*state);
  }
  return kExitOk;
}

}  // namespace

Command PartitionsCommand() {
  Command command;
  command.name = "partitions";
  command.summary = "Show Fabric Manager's partitions: members, active or not, free or busy";
  command.details =
      "Examples:\n"
      "  switchyard partitions\n"
      "  switchyard partitions -o json\n"
      "Asks the agent; without one, shows what it remembered and how old that is. Takes every\n"
      "configuration flag of `switchyard agent`.";
  command.takes_config = true;
  command.run = Run;
  return command;
}

}  // namespace switchyard::apps
