// SPDX-License-Identifier: Apache-2.0
#include "sim/node/gpu_resources.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace switchyard::sim {
namespace {

std::optional<PciAddress> AddressOfId(const SimNode& node, const std::string& id) {
  int number = 0;
  if (!absl::SimpleAtoi(id, &number)) {
    const Result<PciAddress> address = PciAddress::Parse(id);
    return address.ok() ? std::optional(*address) : std::nullopt;
  }
  for (const FunctionState& f : node.sysfs().functions()) {
    const bool by_vfio = node.options().iommufd;
    if (by_vfio ? f.vfio == number : f.group == number) return f.spec.address;
  }
  return std::nullopt;
}

}  // namespace

std::optional<int> ModuleOfId(const SimNode& node, const std::string& id) {
  if (!node.has_board() || !node.has_sysfs()) return std::nullopt;
  const std::optional<PciAddress> address = AddressOfId(node, id);
  for (const BoardDevice& device : node.board().devices) {
    if (device.address == address) return device.module;
  }
  return std::nullopt;
}

std::map<int, std::string> HoldersOfModules(const SimNode& node) {
  std::map<int, std::string> holders;
  if (!node.has_kubelet()) return holders;
  for (const PodReport& pod : node.kubelet().Pods()) {
    for (const ContainerResult& container : pod.status.containers) {
      for (const auto& [resource, ids] : container.devices) {
        for (const std::string& id : ids) {
          const std::optional<int> module = ModuleOfId(node, id);
          if (module.has_value()) holders[*module] = absl::StrCat(pod.ns, "/", pod.name);
        }
      }
    }
  }
  return holders;
}

Result<std::string> OnlyGpuResource(const SimNode& node) {
  std::vector<std::string> names;
  for (const auto& [name, resource] : node.kubelet().Resources()) {
    const bool nvswitch = absl::StrContains(absl::AsciiStrToLower(name), "nvswitch");
    if (resource.connected && resource.capacity > 0 && !nvswitch) names.push_back(name);
  }
  if (names.size() == 1) return names.front();
  if (names.empty()) {
    return absl::NotFoundError(
        "no device plugin has registered a GPU resource: start the agent, and see its log");
  }
  return absl::InvalidArgumentError(absl::StrCat("there is more than one GPU resource (",
                                                 absl::StrJoin(names, ", "),
                                                 "): take one with "
                                                 "--resource"));
}

std::string DescribeModules(const SimNode& node, const std::vector<int>& modules) {
  std::vector<int> sorted = modules;
  std::sort(sorted.begin(), sorted.end());
  const std::string list =
      absl::StrCat(sorted.size() == 1 ? "module " : "modules ", absl::StrJoin(sorted, ", "), ": ");
  for (const BoardPartition& partition : node.board().partitions) {
    if (partition.modules == sorted) return absl::StrCat(list, "partition ", partition.id);
  }
  return absl::StrCat(list, "no partition");
}

}  // namespace switchyard::sim
