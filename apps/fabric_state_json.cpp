// SPDX-License-Identifier: Apache-2.0
// The agent's answer to GET /v1/fabric.
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "apps/fabric_state.h"

namespace switchyard::apps {
namespace {

using nlohmann::json;

Status Bad(absl::string_view what) {
  return absl::InternalError(absl::StrCat("the agent's answer to /v1/fabric: ", what,
                                          ": is it the same version as this program?"));
}

// nlohmann's exceptions on a wrong type end in ParseFabricState.
fabric::ModuleId Module(const json& value) {
  const int module = value.get<int>();
  if (module < fabric::kMinModule || module > fabric::kMaxModule) {
    throw std::out_of_range(absl::StrCat("module ", module, " is not 1 to 16"));
  }
  return module;
}

fabric::ModuleSet Modules(const json& list) {
  fabric::ModuleSet modules;
  for (const json& module : list) modules.Insert(Module(module));
  return modules;
}

fabric::PartitionTable Table(const json& list) {
  fabric::PartitionTable table;
  for (const json& value : list) {
    fabric::Partition partition;
    partition.id = value.at("id").get<int>();
    partition.active = value.at("active").get<bool>();
    partition.modules = Modules(value.at("modules"));
    partition.complete = value.at("complete").get<bool>();
    table.modules = table.modules | partition.modules;
    table.partitions.push_back(partition);
  }
  return table;
}

Status ReadMap(const json& list, FabricState& state) {
  for (const json& value : list) {
    ASSIGN_OR_RETURN(const PciAddress address,
                     PciAddress::Parse(value.at("address").get<std::string>()));
    MapEntry& entry = state.map[address];
    entry.module = Module(value.at("module"));
    entry.sources = value.at("sources").get<std::vector<std::string>>();
    entry.origin = value.value("origin", "");
  }
  return OkStatus();
}

Status ReadTime(const std::string& text, FabricState& state) {
  std::string error;
  if (absl::ParseTime(absl::RFC3339_full, text, &state.read_at, &error)) return OkStatus();
  return Bad(absl::StrCat("readAt: ", error));
}

Status ReadNodes(const json& nodes, FabricState& state) {
  for (const auto& [text, node] : nodes.items()) {
    int module = 0;
    if (!absl::SimpleAtoi(text, &module)) return Bad("a numaNodes key is no module id");
    state.numa_node.at(static_cast<size_t>(module)) = node.get<int>();
  }
  return OkStatus();
}

Result<FabricState> Read(const json& object) {
  FabricState state;
  state.live = true;
  state.mode = object.at("mode").get<std::string>();
  state.known = object.at("known").get<bool>();
  state.up = object.at("up").get<bool>();
  state.error = object.at("error").get<std::string>();
  if (state.known) RETURN_IF_ERROR(ReadTime(object.at("readAt").get<std::string>(), state));
  state.table = Table(object.at("partitions"));
  RETURN_IF_ERROR(ReadMap(object.at("map"), state));
  state.map_errors = object.at("mapErrors").get<std::vector<std::string>>();
  state.busy = Modules(object.at("busy"));
  state.usable = Modules(object.at("usable"));
  RETURN_IF_ERROR(ReadNodes(object.at("numaNodes"), state));
  return state;
}

}  // namespace

Result<FabricState> ParseFabricState(absl::string_view text) {
  try {
    return Read(json::parse(text.begin(), text.end()));
  } catch (const std::exception& error) {
    return Bad(error.what());
  }
}

}  // namespace switchyard::apps
