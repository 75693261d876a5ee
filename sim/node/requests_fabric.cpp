// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "sim/node/requests.h"

namespace switchyard::sim {
namespace {

using Json = nlohmann::json;
using Faults = FabricManagerFaults;

Json Done(std::string what) { return {{"done", std::move(what)}}; }

Result<Json> Up(SimNode& node, const Json&) {
  RETURN_IF_ERROR(node.fm().Start());
  return Done("Fabric Manager is up");
}

Result<Json> Down(SimNode& node, const Json&) {
  node.fm().Stop();
  return Done("Fabric Manager is down");
}

// Changes one thing about the faults.
template <typename Change>
Json Alter(SimNode& node, std::string what, Change change) {
  Faults faults = node.fm().faults();
  change(faults);
  node.fm().SetFaults(std::move(faults));
  return Done(std::move(what));
}

Result<Json> Hang(SimNode& node, const Json& request) {
  static const std::map<std::string, Faults::Hang> hangs = {{"connect", Faults::Hang::kConnect},
                                                            {"list", Faults::Hang::kList}};
  ASSIGN_OR_RETURN(const std::string call, TextArgument(request, "call"));
  const auto it = hangs.find(call);
  if (it == hangs.end()) {
    return absl::InvalidArgumentError("a call that can hang is connect or list");
  }
  return Alter(node, absl::StrCat("Fabric Manager leaves ", call, " calls unanswered"),
               [&](Faults& faults) { faults.hang = it->second; });
}

Result<Json> Latency(SimNode& node, const Json& request) {
  ASSIGN_OR_RETURN(const std::int64_t ms, IntArgument(request, "ms", 0, 600'000));
  return Alter(node, absl::StrCat("Fabric Manager answers after ", ms, " ms"),
               [&](Faults& faults) { faults.latency = absl::Milliseconds(ms); });
}

Result<Json> Crash(SimNode& node, const Json&) {
  return Alter(node, "libnvfm kills the process that asks for the list",
               [](Faults& faults) { faults.crash_library = true; });
}

Result<Json> Code(SimNode& node, const Json& request) {
  ASSIGN_OR_RETURN(const std::int64_t code, IntArgument(request, "code", -99, 0));
  return Alter(node, absl::StrCat("the list call returns ", code),
               [&](Faults& faults) { faults.list_code = static_cast<int>(code); });
}

Result<Json> Table(SimNode& node, const Json& request) {
  static const std::map<std::string, BrokenTable> rules = {
      {"65-partitions", BrokenTable::kTooManyPartitions},
      {"17-gpus", BrokenTable::kTooManyGpus},
      {"repeated-id", BrokenTable::kRepeatedId},
      {"empty-partition", BrokenTable::kEmptyPartition},
      {"repeated-gpu", BrokenTable::kRepeatedGpu}};
  ASSIGN_OR_RETURN(const std::string rule, TextArgument(request, "rule"));
  const auto it = rules.find(rule);
  if (it == rules.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", rule, "\" is no rule of a table; there are ",
        absl::StrJoin(rules, ", ",
                      [](std::string* out, const auto& entry) { out->append(entry.first); })));
  }
  return Alter(node, absl::StrCat("Fabric Manager's table has ", rule),
               [&](Faults& faults) { faults.table = it->second; });
}

Result<Json> Degrade(SimNode& node, const Json& request) {
  ASSIGN_OR_RETURN(const std::int64_t module, IntArgument(request, "module", 1, 16));
  return Alter(node, absl::StrCat("module ", module, " is out of order for Fabric Manager"),
               [&](Faults& faults) { faults.failed_modules.insert(static_cast<int>(module)); });
}

Result<Json> OldVersion(SimNode& node, const Json&) {
  return Alter(node, "Fabric Manager knows connect parameters of version 1 only",
               [](Faults& faults) { faults.connect_v1_only = true; });
}

Result<Json> None(SimNode& node, const Json&) {
  node.fm().SetFaults({});
  return Done("Fabric Manager answers as it should");
}

Result<Json> Activation(SimNode& node, const Json& request, bool activate) {
  if (!request.contains("ids") || !request["ids"].is_array() || request["ids"].size() > 64) {
    return absl::InvalidArgumentError("\"ids\" must be a list of partition ids");
  }
  std::set<int> active = node.fm().active();
  for (const Json& id : request["ids"]) {
    if (!id.is_number_integer()) return absl::InvalidArgumentError("a partition id is a number");
    if (activate) {
      active.insert(id.get<int>());
    } else {
      active.erase(id.get<int>());
    }
  }
  RETURN_IF_ERROR(node.fm().SetActive(active));
  return Done(
      absl::StrCat("active partitions: ", active.empty() ? "none" : absl::StrJoin(active, ", ")));
}

}  // namespace

void AddFabricRequests(RequestTable& table) {
  table["fm.up"] = Up;
  table["fm.down"] = Down;
  table["fm.hang"] = Hang;
  table["fm.latency"] = Latency;
  table["fm.crash"] = Crash;
  table["fm.code"] = Code;
  table["fm.table"] = Table;
  table["fm.degrade"] = Degrade;
  table["fm.old-version"] = OldVersion;
  table["fm.none"] = None;
  table["fm.activate"] = [](SimNode& n, const Json& r) { return Activation(n, r, true); };
  table["fm.deactivate"] = [](SimNode& n, const Json& r) { return Activation(n, r, false); };
}

}  // namespace switchyard::sim
