// SPDX-License-Identifier: Apache-2.0
// `switchyard holders`: who has which device open. Looks at processes itself: no agent is asked,
// and no device and no group is opened.
#include "pci/holders.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "apps/command.h"
#include "apps/load_config.h"
#include "apps/output.h"
#include "kube/pod_of_cgroup.h"
#include "pci/inventory.h"

namespace switchyard::apps {
namespace {

using nlohmann::ordered_json;
using pci::Holder;

std::string PodUid(const Holder& holder) {
  const std::optional<kube::PodOfCgroup> pod = kube::PodOf(holder.cgroup);
  return pod.has_value() ? pod->uid : "";
}

ordered_json OrNull(const std::string& text) {
  return text.empty() ? ordered_json(nullptr) : ordered_json(text);
}

ordered_json HoldersJson(const std::vector<Holder>& holders) {
  ordered_json list = ordered_json::array();
  for (const Holder& holder : holders) {
    list.push_back({{"pid", holder.pid},
                    {"command", holder.command},
                    {"podUid", OrNull(PodUid(holder))},
                    {"cgroup", OrNull(holder.cgroup)},
                    {"file", OrNull(holder.file)},
                    {"problem", OrNull(holder.problem)}});
  }
  return list;
}

void PrintAsJson(const std::vector<pci::DeviceNodes>& devices, const pci::Holders& holders) {
  ordered_json list = ordered_json::array();
  for (const pci::DeviceNodes& device : devices) {
    const auto it = holders.of.find(device.address);
    list.push_back(
        {{"address", device.address.ToString()},
         {"mayBeHeld", holders.MayHold(device.address)},
         {"holders", HoldersJson(it == holders.of.end() ? std::vector<Holder>() : it->second)}});
  }
  PrintJson({{"devices", list},
             {"anyDevice", HoldersJson(holders.anyones)},
             {"unreadable", HoldersJson(holders.unreadable)}});
}

std::string Who(const Holder& holder) {
  const std::string pod = PodUid(holder);
  return absl::StrCat("process ", holder.pid, " (", holder.command, ")",
                      pod.empty() ? "" : absl::StrCat(" of pod ", pod));
}

void PrintAsTable(const std::vector<pci::DeviceNodes>& devices, const pci::Holders& holders) {
  Table table({"ADDRESS", "PID", "COMMAND", "POD", "FILE"});
  for (const pci::DeviceNodes& device : devices) {
    const std::string address = device.address.ToString();
    const auto it = holders.of.find(device.address);
    if (it == holders.of.end()) {
      table.Add({address, "", "", "", ""});
      continue;
    }
    for (const Holder& holder : it->second) {
      table.Add({address, absl::StrCat(holder.pid), holder.command, PodUid(holder), holder.file});
    }
  }
  Print(devices.empty() ? "no NVIDIA GPU and no NVSwitch" : table.ToString());
  for (const Holder& holder : holders.anyones) {
    Print(absl::StrCat(Who(holder), " has ", holder.file,
                       " open, and nobody can say which device that is"));
  }
  for (const Holder& holder : holders.unreadable) {
    Print(absl::StrCat(Who(holder), " may have any device open: ", holder.problem));
  }
}

// Those named, else every GPU and NVSwitch.
Result<std::vector<pci::DeviceNodes>> Devices(const HostRoot& root, const std::string& named) {
  std::vector<PciAddress> addresses;
  for (const absl::string_view text : absl::StrSplit(named, ' ', absl::SkipEmpty())) {
    const Result<PciAddress> address = PciAddress::Parse(text);
    if (!address.ok()) return UsageStatus(address.status().message());
    addresses.push_back(*address);
  }
  if (addresses.empty()) {
    ASSIGN_OR_RETURN(const pci::Inventory inventory, pci::Scan(root));
    for (const pci::Device& device : inventory.devices) addresses.push_back(device.address());
  }
  std::vector<pci::DeviceNodes> devices;
  for (const PciAddress& address : addresses) {
    ASSIGN_OR_RETURN(pci::DeviceNodes nodes, pci::ReadDeviceNodes(root, address));
    devices.push_back(std::move(nodes));
  }
  return devices;
}

int Run(const Arguments& arguments) {
  const Result<agent::LoadedConfig> loaded = LoadConfigOf(arguments);
  if (!loaded.ok()) return Fail(loaded.status());
  const HostRoot root(loaded->config.paths.host_root);
  const Result<std::vector<pci::DeviceNodes>> devices = Devices(root, arguments.Get("ADDRESS"));
  if (!devices.ok()) return Fail(devices.status());
  const Result<pci::Holders> holders = pci::FindHolders(root, *devices);
  if (!holders.ok()) return Fail(Annotate(holders.status(), "looking at processes"));
  if (arguments.json) {
    PrintAsJson(*devices, *holders);
  } else {
    PrintAsTable(*devices, *holders);
  }
  return kExitOk;
}

}  // namespace

Command HoldersCommand() {
  Command command;
  command.name = "holders";
  command.summary = "Show which process of which pod has a GPU open";
  command.details =
      "Examples:\n"
      "  switchyard holders\n"
      "  switchyard holders 0000:0f:00.0 0000:2d:00.0 -o json\n"
      "Looks at the host's processes, as root; needs no agent and opens no device. POD is the\n"
      "pod's UID, as in `kubectl get pods -A -o yaml`. Processes that may have any device open "
      "are\n"
      "listed below the table. The exit code is 0 whether anybody holds a device or not. Takes\n"
      "every configuration flag of `switchyard agent`.";
  Option addresses;
  addresses.name = "ADDRESS";
  addresses.help = "PCI addresses; none: every GPU and NVSwitch";
  addresses.many = true;
  command.options = {addresses};
  command.takes_config = true;
  command.run = Run;
  return command;
}

}  // namespace switchyard::apps
