// SPDX-License-Identifier: Apache-2.0
#include "sim/kubelet/shortage.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace switchyard::sim {
namespace {

// What a pod counts for: as much as its init containers need one after the other, or all others
// together if that is more. Restartable ones run beside everything that comes after them.
std::map<std::string, int> Requests(const PodSpec& pod) {
  std::map<std::string, int> running, most;
  for (const bool init : {true, false}) {
    for (const ContainerSpec& container : pod.containers) {
      if (container.init != init) continue;
      for (const auto& [resource, count] : container.resources) {
        most[resource] = std::max(most[resource], running[resource] + count);
        if (!init || container.restartable) running[resource] += count;
      }
    }
  }
  return most;
}

}  // namespace

std::optional<Shortage> FindShortage(const PodSpec& pod, const std::vector<PodSpec>& others,
                                     const std::map<std::string, ResourceReport>& node) {
  std::map<std::string, int> used;
  for (const PodSpec& other : others) {
    for (const auto& [resource, count] : Requests(other)) used[resource] += count;
  }
  for (const auto& [resource, requested] : Requests(pod)) {
    const auto report = node.find(resource);
    if (requested == 0 || report == node.end()) continue;
    // At least what is allocated: sanitizeNodeAllocatable of the device manager.
    const auto in_use = std::count_if(report->second.devices.begin(), report->second.devices.end(),
                                      [](const DeviceReport& device) { return device.in_use; });
    const int capacity = std::max(report->second.allocatable, static_cast<int>(in_use));
    if (requested + used[resource] <= capacity) continue;
    return Shortage{resource, absl::StrCat("Node didn't have enough resource: ", resource,
                                           ", requested: ", requested, ", used: ", used[resource],
                                           ", capacity: ", capacity)};
  }
  return std::nullopt;
}

}  // namespace switchyard::sim
