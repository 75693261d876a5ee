// SPDX-License-Identifier: Apache-2.0
// `switchyard tenancies`: who has which partition, by the journal, kubelet and the processes.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "apps/command.h"
#include "apps/enforce_state.h"
#include "apps/load_config.h"
#include "apps/output.h"
#include "base/clock.h"
#include "pci/holders.h"

namespace switchyard::apps {
namespace {

using nlohmann::ordered_json;
using tenancy::TenancyView;

// Tenancies a process may have a device of open: looked at here and now. An error if the processes
// can't be read.
Result<std::set<std::uint64_t>> FindHeld(const HostRoot& root, const tenancy::EnforceView& view) {
  std::vector<pci::DeviceNodes> nodes;
  for (const TenancyView& one : view.tenancies) {
    for (const tenancy::TenancyDevice& device : one.record.devices) {
      Result<pci::DeviceNodes> read = pci::ReadDeviceNodes(root, device.address);
      if (absl::IsNotFound(read.status())) continue;  // it is gone: nobody can hold it
      RETURN_IF_ERROR(read.status());
      nodes.push_back(*std::move(read));
    }
  }
  ASSIGN_OR_RETURN(const pci::Holders holders, pci::FindHolders(root, nodes));
  std::set<std::uint64_t> held;
  for (const TenancyView& one : view.tenancies) {
    for (const tenancy::TenancyDevice& device : one.record.devices) {
      if (holders.MayHold(device.address)) held.insert(one.record.id);
    }
  }
  return held;
}

std::vector<std::string> DevicesOf(const TenancyView& view) {
  std::vector<std::string> devices;
  devices.reserve(view.record.devices.size());
  for (const tenancy::TenancyDevice& device : view.record.devices)
    devices.push_back(device.address.ToString());
  return devices;
}

std::string TimeText(absl::Time time) {
  return absl::FormatTime(absl::RFC3339_sec, time, absl::UTCTimeZone());
}

std::string AgeText(absl::Duration age) {
  return absl::FormatDuration(absl::Trunc(age, absl::Seconds(1)));
}

void PrintAsJson(const EnforceState& state, const Result<std::set<std::uint64_t>>& held) {
  ordered_json list = ordered_json::array();
  for (const TenancyView& view : state.view.tenancies) {
    const tenancy::TenancyRecord& record = view.record;
    ordered_json owner = nullptr;
    if (record.owner) owner = {{"kind", record.owner->kind}, {"key", record.owner->key}};
    // What only the agent knows is null without one.
    list.push_back(
        {{"id", record.id},
         {"owner", owner},
         {"partition", view.partition ? ordered_json(*view.partition) : ordered_json(nullptr)},
         {"state", std::string(tenancy::TenancyStateName(record.state))},
         {"modules", record.modules.ToVector()},
         {"devices", DevicesOf(view)},
         {"begun", TimeText(record.begun)},
         {"changed", TimeText(record.changed)},
         {"adopted", record.adopted},
         {"untilReleased", record.until_released},
         {"active", state.live ? ordered_json(view.active) : ordered_json(nullptr)},
         {"listed", state.live ? ordered_json(view.listed) : ordered_json(nullptr)},
         {"held", held.ok() ? ordered_json(held->count(record.id) != 0) : ordered_json(nullptr)},
         {"unusedForSeconds", view.unused_for
                                  ? ordered_json(absl::ToDoubleSeconds(*view.unused_for))
                                  : ordered_json(nullptr)},
         {"uncertain", state.live ? ordered_json(view.uncertain) : ordered_json(nullptr)}});
  }
  PrintJson(
      {{"live", state.live},
       {"podsUnknown", state.live ? ordered_json(state.view.pods_unknown) : ordered_json(nullptr)},
       {"draining", state.view.draining},
       {"fabricProblem", state.view.fabric_problem},
       {"journalProblem", state.view.journal_problem},
       {"dirty", state.view.dirty.ToVector()},
       {"tenancies", list},
       {"lost", state.lost}});
}

std::string StateText(const TenancyView& view, bool live) {
  std::string text(tenancy::TenancyStateName(view.record.state));
  if (view.uncertain) absl::StrAppend(&text, " (uncertain)");
  if (live && view.record.state == tenancy::TenancyState::kActive && !view.active)
    absl::StrAppend(&text, " (inactive in Fabric Manager)");
  return text;
}

std::string YesNo(bool yes) { return yes ? "yes" : "no"; }

void PrintAsTable(const EnforceState& state, const Result<std::set<std::uint64_t>>& held) {
  const absl::Time now = RealClock().Now();
  if (!state.live) Print("no agent is running; read from the state file");
  Table table({"TENANCY", "OWNER", "PARTITION", "STATE", "GPUS", "SINCE", "LISTED", "HELD",
               "UNUSED", "DEVICES"});
  for (const TenancyView& view : state.view.tenancies) {
    const tenancy::TenancyRecord& record = view.record;
    table.Add(
        {absl::StrCat(record.id), OwnerText(record),
         view.partition ? absl::StrCat(*view.partition) : "vanished", StateText(view, state.live),
         absl::StrCat(record.modules.size()), AgeText(now - record.changed),
         state.live ? YesNo(view.listed) : "", held.ok() ? YesNo(held->count(record.id) != 0) : "",
         view.unused_for ? AgeText(*view.unused_for) : "", absl::StrJoin(DevicesOf(view), ",")});
  }
  Print(state.view.tenancies.empty() ? "no tenancies" : table.ToString());
  if (state.view.pods_unknown) {
    Print(
        "kubelet has not shown yet that it knows its pods: what it does not list is kept; see that "
        "it reaches the API server, or release by hand: switchyard release ID --force");
  }
  if (state.view.draining) Print("the node is being drained: no new tenancies");
  if (!state.view.fabric_problem.empty())
    Print(absl::StrCat("nothing can be activated now: ", state.view.fabric_problem));
  if (!state.view.journal_problem.empty())
    Print(absl::StrCat("the journal: ", state.view.journal_problem));
  if (!state.view.dirty.empty()) {
    Print(absl::StrCat("dirty: Fabric Manager lost partitions of modules ",
                       state.view.dirty.ToString(),
                       " while they are in use; end those virtual machines"));
  }
  for (const std::string& lost : state.lost) Print(absl::StrCat("not readable: ", lost));
  if (!held.ok()) Print(absl::StrCat("who holds devices is not known: ", held.status().message()));
}

int Run(const Arguments& arguments) {
  const Result<agent::LoadedConfig> loaded = LoadConfigOf(arguments);
  if (!loaded.ok()) return Fail(loaded.status());
  const Result<EnforceState> state = ReadEnforceState(loaded->config);
  if (!state.ok()) return Fail(state.status());
  const Result<std::set<std::uint64_t>> held =
      FindHeld(HostRoot(loaded->config.paths.host_root), state->view);
  if (arguments.json) {
    PrintAsJson(*state, held);
  } else {
    PrintAsTable(*state, held);
  }
  return kExitOk;
}

}  // namespace

Command TenanciesCommand() {
  Command command;
  command.name = "tenancies";
  command.summary = "Show who has which partition (fabric.mode enforce)";
  command.details =
      "Examples:\n"
      "  switchyard tenancies\n"
      "  switchyard tenancies -o json\n"
      "SINCE is the last change of state; LISTED is kubelet's word, HELD what the processes have\n"
      "open now, UNUSED how long both have said that nobody has it: after tenancy.grace it is\n"
      "released. Asks the agent; without one, shows what is in the state file. Takes every\n"
      "configuration flag of `switchyard agent`.";
  command.takes_config = true;
  command.run = Run;
  return command;
}

}  // namespace switchyard::apps
