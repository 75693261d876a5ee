// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>
#include <vector>

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

// Both what can hang and what can return a code, by the words of the command line.
struct Call {
  WireCall call;
  Faults::Hang hang;
};
Result<Call> CallArgument(const std::string& name) {
  static const std::map<std::string, Call> calls = {
      {"connect", {WireCall::kConnect, Faults::Hang::kConnect}},
      {"list", {WireCall::kListPartitions, Faults::Hang::kList}},
      {"activate", {WireCall::kActivate, Faults::Hang::kActivate}},
      {"deactivate", {WireCall::kDeactivate, Faults::Hang::kDeactivate}},
      {"set-activated", {WireCall::kSetActivated, Faults::Hang::kSetActivated}}};
  const auto it = calls.find(name);
  if (it != calls.end()) return it->second;
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", name,
      "\" is no call; there are connect, list, activate, deactivate and set-activated"));
}

Result<Json> Hang(SimNode& node, const Json& request) {
  ASSIGN_OR_RETURN(const std::string name, TextArgument(request, "call"));
  ASSIGN_OR_RETURN(const Call call, CallArgument(name));
  return Alter(node, absl::StrCat("Fabric Manager leaves ", name, " calls unanswered"),
               [&](Faults& faults) { faults.hang = call.hang; });
}

Result<Json> Latency(SimNode& node, const Json& request) {
  ASSIGN_OR_RETURN(const std::int64_t ms, IntArgument(request, "ms", 0, 600'000));
  return Alter(node, absl::StrCat("Fabric Manager answers after ", ms, " ms"),
               [&](Faults& faults) { faults.latency = absl::Milliseconds(ms); });
}

Result<Json> Slow(SimNode& node, const Json& request) {
  ASSIGN_OR_RETURN(const std::int64_t ms, IntArgument(request, "ms", 0, 600'000));
  return Alter(node, absl::StrCat("Fabric Manager takes ", ms, " ms for a change"),
               [&](Faults& faults) { faults.change_time = absl::Milliseconds(ms); });
}

Result<Json> Crash(SimNode& node, const Json&) {
  return Alter(node, "libnvfm kills the process that asks for the list or changes something",
               [](Faults& faults) { faults.crash_library = true; });
}

Result<Json> Code(SimNode& node, const Json& request) {
  ASSIGN_OR_RETURN(const std::int64_t wide, IntArgument(request, "code", -99, 0));
  ASSIGN_OR_RETURN(const std::string name, TextArgument(request, "call"));
  ASSIGN_OR_RETURN(const Call call, CallArgument(name));
  const int code = static_cast<int>(wide);
  return Alter(node, absl::StrCat("the ", name, " call returns ", code), [&](Faults& faults) {
    switch (call.call) {
      case WireCall::kConnect:
        faults.connect_code = code;
        break;
      case WireCall::kListPartitions:
        faults.list_code = code;
        break;
      default:
        faults.change_codes[call.call] = code;
    }
  });
}

Result<Json> NoEffect(SimNode& node, const Json&) {
  return Alter(node, "changes are answered with success, and nothing happens",
               [](Faults& faults) { faults.no_effect = true; });
}

Result<Json> Late(SimNode& node, const Json&) {
  return Alter(node, "changes are left unanswered, and done once the caller has given up",
               [](Faults& faults) { faults.late_changes = true; });
}

Result<Json> Restart(SimNode& node, const Json& request) {
  ASSIGN_OR_RETURN(const std::string kind, TextArgument(request, "kind"));
  if (kind != "warm" && kind != "cold") {
    return absl::InvalidArgumentError("\"kind\" must be warm or cold");
  }
  if (request.contains("code")) {
    ASSIGN_OR_RETURN(const std::int64_t code, IntArgument(request, "code", -99, -1));
    Faults faults = node.fm().faults();
    faults.waiting_code = static_cast<int>(code);
    node.fm().SetFaults(std::move(faults));
  }
  const bool warm = kind == "warm";
  RETURN_IF_ERROR(
      node.fm().Restart(warm ? FabricManager::Kind::kWarm : FabricManager::Kind::kCold));
  if (!warm) return Done("Fabric Manager has restarted; no partition is active");
  return Done(absl::StrCat("Fabric Manager has restarted; it waits ",
                           absl::FormatDuration(FabricManager::kWindow),
                           " for the list of active partitions, answers other calls with ",
                           node.fm().faults().waiting_code, " and then exits"));
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

// The partition ids of a request.
Result<std::vector<int>> IdsArgument(const Json& request) {
  if (!request.contains("ids") || !request["ids"].is_array() || request["ids"].size() > 64) {
    return absl::InvalidArgumentError("\"ids\" must be a list of partition ids");
  }
  std::vector<int> ids;
  for (const Json& id : request["ids"]) {
    if (!id.is_number_integer()) return absl::InvalidArgumentError("a partition id is a number");
    ids.push_back(id.get<int>());
  }
  return ids;
}

// What Fabric Manager refused, for a person.
std::string Refused(const SimNode& node, int id, fmReturn code) {
  std::string why;
  if (code == FM_CONNECTION_NOT_VALID) {
    why = "it is down";
  } else if (node.fm().waiting()) {
    why = "it waits for the list of active partitions";
  } else if (code == FM_BADPARAM) {
    why = "the board has no such partition";
  } else if (node.fm().active().contains(id)) {
    why = "it is active already";
  } else if (code == FM_IN_USE || code == FM_RESOURCE_USED_IN_ANOTHER_PARTITION) {
    why = "a GPU of it is in another active partition";
  } else {
    why = "it is not active";
  }
  return absl::StrCat("partition ", id, ": Fabric Manager answers ", code, ": ", why);
}

// An operator's own client; those before the one that is refused are done.
Result<Json> Activation(SimNode& node, const Json& request, bool activate) {
  ASSIGN_OR_RETURN(const std::vector<int> ids, IdsArgument(request));
  for (const int id : ids) {
    const fmReturn code = activate ? node.fm().Activate(id) : node.fm().Deactivate(id);
    if (code != FM_SUCCESS) return absl::FailedPreconditionError(Refused(node, id, code));
  }
  const std::set<int> active = node.fm().active();
  return Done(
      absl::StrCat("active partitions: ", active.empty() ? "none" : absl::StrJoin(active, ", ")));
}

}  // namespace

void AddFabricRequests(RequestTable& table) {
  table["fm.up"] = Up;
  table["fm.down"] = Down;
  table["fm.hang"] = Hang;
  table["fm.latency"] = Latency;
  table["fm.slow"] = Slow;
  table["fm.crash"] = Crash;
  table["fm.code"] = Code;
  table["fm.no-effect"] = NoEffect;
  table["fm.late"] = Late;
  table["fm.restart"] = Restart;
  table["fm.table"] = Table;
  table["fm.degrade"] = Degrade;
  table["fm.old-version"] = OldVersion;
  table["fm.none"] = None;
  table["fm.activate"] = [](SimNode& n, const Json& r) { return Activation(n, r, true); };
  table["fm.deactivate"] = [](SimNode& n, const Json& r) { return Activation(n, r, false); };
}

}  // namespace switchyard::sim
