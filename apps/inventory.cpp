// SPDX-License-Identifier: Apache-2.0
// `switchyard inventory`: the GPUs and NVSwitches of a node, or of a copy of its /sys.
#include "pci/inventory.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "apps/command.h"
#include "apps/load_config.h"
#include "apps/output.h"
#include "pci/pci_ids.h"

namespace switchyard::apps {
namespace {

using nlohmann::ordered_json;

template <typename T>
ordered_json OrNull(const std::optional<T>& value) {
  return value.has_value() ? ordered_json(*value) : ordered_json(nullptr);
}

std::optional<std::string> BackendText(const pci::Device& device) {
  if (!device.backend.has_value()) return std::nullopt;
  return std::string(pci::BackendName(*device.backend));
}

ordered_json DeviceJson(const pci::Device& device, const pci::PciIds& ids) {
  const pci::Function& self = device.self;
  ordered_json members = ordered_json::array();
  for (const pci::Function& member : device.members) members.push_back(member.address.ToString());
  return {{"address", self.address.ToString()},
          {"class", absl::StrFormat("0x%06x", self.class_code)},
          {"vendor", absl::StrFormat("0x%04x", self.vendor)},
          {"device", absl::StrFormat("0x%04x", self.device)},
          {"name", OrNull(ids.Name(self.device))},
          {"driver", OrNull(self.driver)},
          {"iommuGroup", OrNull(self.iommu_group)},
          {"members", members},
          {"numaNode", OrNull(self.numa_node)},
          {"backend", OrNull(BackendText(device))},
          {"ready", device.ready()},
          {"problem", OrNull(device.problem)}};
}

void PrintAsJson(const pci::Inventory& inventory, const pci::PciIds& ids) {
  ordered_json devices = ordered_json::array();
  for (const pci::Device& device : inventory.devices) devices.push_back(DeviceJson(device, ids));
  ordered_json problems = ordered_json::array();
  for (const pci::Problem& problem : inventory.problems) {
    problems.push_back({{"path", problem.path}, {"problem", problem.problem}});
  }
  PrintJson({{"devices", devices}, {"problems", problems}});
}

std::string NumberText(const std::optional<int>& number) {
  return number.has_value() ? absl::StrCat(*number) : "";
}

void PrintAsTable(const pci::Inventory& inventory, const pci::PciIds& ids) {
  Table table({"ADDRESS", "KIND", "NAME", "DRIVER", "GROUP", "WITH", "NUMA", "BACKEND", "READY"});
  for (const pci::Device& device : inventory.devices) {
    const pci::Function& self = device.self;
    std::vector<std::string> companions;
    for (const pci::Function& member : device.members) {
      if (member.address != self.address) companions.push_back(member.address.ToString());
    }
    table.Add({self.address.ToString(), self.IsGpu() ? "GPU" : "NVSwitch",
               ids.Name(self.device).value_or(absl::StrFormat("0x%04x", self.device)),
               self.driver.value_or(""), NumberText(self.iommu_group),
               absl::StrJoin(companions, ","), NumberText(self.numa_node),
               BackendText(device).value_or(""), device.ready() ? "yes" : "no"});
  }
  Print(inventory.devices.empty() ? "no NVIDIA GPU and no NVSwitch" : table.ToString());
  for (const pci::Device& device : inventory.devices) {
    if (!device.ready()) Print(absl::StrCat(device.address().ToString(), ": ", *device.problem));
  }
  for (const pci::Problem& problem : inventory.problems) {
    Print(absl::StrCat(problem.path, ": ", problem.problem));
  }
}

int Run(const Arguments& arguments) {
  Arguments with_paths = arguments;
  for (const auto& [option, key] :
       {std::pair("--host-root", "paths.hostRoot"), std::pair("--pci-ids", "paths.pciIds")}) {
    if (!arguments.Has(option)) continue;
    std::error_code ignored;  // an empty path stays empty, and the key's rule refuses it
    const std::filesystem::path path = std::filesystem::absolute(arguments.Get(option), ignored);
    with_paths.settings.emplace_back(key, path.string());
  }
  const Result<agent::LoadedConfig> loaded = LoadConfigOf(with_paths);
  if (!loaded.ok()) return Fail(loaded.status());
  const agent::PathsConfig& paths = loaded->config.paths;
  const Result<pci::Inventory> inventory = pci::Scan(HostRoot(paths.host_root));
  if (!inventory.ok()) {
    return Fail(Annotate(inventory.status(),
                         "reading the devices (is --host-root a folder with sys/ in it?)"));
  }
  const pci::PciIds ids(paths.pci_ids);
  if (arguments.json) {
    PrintAsJson(*inventory, ids);
  } else {
    PrintAsTable(*inventory, ids);
  }
  return kExitOk;
}

}  // namespace

Command InventoryCommand() {
  Command command;
  command.name = "inventory";
  command.summary = "List GPUs and NVSwitches, and whether a virtual machine could take them";
  command.details =
      "Examples:\n"
      "  switchyard inventory\n"
      "  switchyard inventory -o json\n"
      "  switchyard inventory --host-root /tmp/copy   # a folder with somebody's sys/ in it\n"
      "Takes every configuration flag of `switchyard agent`. Devices that are not ready and files\n"
      "that can't be read are listed with their problem; the exit code stays 0.";
  command.options = {
      {"--host-root", "DIR", "folder that holds sys/ and dev/; the same as --paths-host-root"},
      {"--pci-ids", "FILE", "names of PCI devices; the same as --paths-pci-ids"}};
  command.takes_config = true;
  command.run = Run;
  return command;
}

}  // namespace switchyard::apps
