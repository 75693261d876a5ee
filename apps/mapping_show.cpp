// SPDX-License-Identifier: Apache-2.0
// `switchyard mapping show`: every entry of the module map, and who says so.
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "apps/command.h"
#include "apps/fabric_helper.h"
#include "apps/fabric_state.h"
#include "apps/load_config.h"
#include "apps/output.h"
#include "tenancy/map_sources.h"

namespace switchyard::apps {
namespace {

using nlohmann::ordered_json;

fabric::ModuleEntries EntriesOf(const FabricState& state) {
  fabric::ModuleEntries entries;
  for (const auto& [address, entry] : state.map) entries.emplace(address, entry.module);
  return entries;
}

// Where no agent says it: the files and NVML as they are now, and what was remembered.
FabricState ReadSources(const agent::Config& config, const Result<FabricState>& remembered) {
  fabric::FabricHelper helper(HelperOptionsOf(config));
  tenancy::MapSources sources = tenancy::ReadMapSources(config.fabric.module_map, &helper);
  if (remembered.ok() && !sources.unusable_file) {
    sources.input.remembered = EntriesOf(*remembered);
  }
  const fabric::ModuleMap joined = fabric::ModuleMap::Join(sources.input);
  FabricState state;
  state.map = MapOf(joined);
  state.map_errors = std::move(sources.errors);
  state.map_errors.insert(state.map_errors.end(), joined.errors().begin(), joined.errors().end());
  return state;
}

void PrintAsJson(const FabricState& state) {
  ordered_json entries = ordered_json::array();
  for (const auto& [address, entry] : state.map) {
    entries.push_back(
        {{"address", address.ToString()},
         {"module", entry.module},
         {"sources", entry.sources},
         {"origin", entry.origin.empty() ? ordered_json(nullptr) : ordered_json(entry.origin)}});
  }
  PrintJson({{"live", state.live}, {"entries", entries}, {"errors", state.map_errors}});
}

void PrintAsTable(const FabricState& state) {
  Table table({"ADDRESS", "MODULE", "SOURCES", "FILE"});
  for (const auto& [address, entry] : state.map) {
    table.Add({address.ToString(), absl::StrCat(entry.module), absl::StrJoin(entry.sources, ","),
               entry.origin});
  }
  Print(table.ToString());
  for (const std::string& error : state.map_errors) Print(absl::StrCat("error: ", error));
  if (state.map.empty()) {
    Print(
        "no module id is known: run `switchyard mapping create` while the GPUs are on the nvidia "
        "driver, or `switchyard mapping set ADDRESS MODULE`");
  }
}

int Run(const Arguments& arguments) {
  const Result<agent::LoadedConfig> loaded = LoadConfigOf(arguments);
  if (!loaded.ok()) return Fail(loaded.status());
  Result<FabricState> state = ReadFabricState(loaded->config);
  if (!state.ok() && !absl::IsNotFound(state.status())) return Fail(state.status());
  // An agent whose fabric is off reads no sources.
  if (!state.ok() || !state->live || state->mode == "off")
    state = ReadSources(loaded->config, state);
  if (arguments.json) {
    PrintAsJson(*state);
  } else {
    PrintAsTable(*state);
  }
  return kExitOk;
}

}  // namespace

Command MappingShowCommand() {
  Command command;
  command.name = "mapping show";
  command.summary = "Show which GPU has which module id, and who says so";
  command.details =
      "Examples:\n"
      "  switchyard mapping show\n"
      "  switchyard mapping show -o json\n"
      "Asks the agent; without one, reads the files, NVML and what was remembered. Entries that\n"
      "contradict each other are left out, each with an error below. Takes every configuration\n"
      "flag of `switchyard agent`.";
  command.takes_config = true;
  command.run = Run;
  return command;
}

}  // namespace switchyard::apps
