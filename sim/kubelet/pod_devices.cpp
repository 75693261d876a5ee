// SPDX-License-Identifier: Apache-2.0
#include "sim/kubelet/pod_devices.h"

#include <algorithm>

namespace switchyard::sim {
namespace {

// Appends those of `from` whose key no element of `to` has.
template <typename T, typename Key>
void AppendNew(std::vector<T>& to, const std::vector<T>& from, Key key) {
  for (const T& one : from) {
    const auto same = [&](const T& other) { return key(other) == key(one); };
    if (std::none_of(to.begin(), to.end(), same)) to.push_back(one);
  }
}

}  // namespace

void PodDevices::Insert(PodUid pod, const std::string& container, Allocation allocation) {
  pods_[pod][container].push_back(std::move(allocation));
}

void PodDevices::Delete(const std::set<PodUid>& pods) {
  for (const PodUid pod : pods) pods_.erase(pod);
}

std::vector<Allocation> PodDevices::OfContainer(PodUid pod, const std::string& container) const {
  const auto containers = pods_.find(pod);
  if (containers == pods_.end()) return {};
  const auto found = containers->second.find(container);
  return found == containers->second.end() ? std::vector<Allocation>{} : found->second;
}

std::set<std::string> PodDevices::Ids(PodUid pod, const std::string& container,
                                      const std::string& resource) const {
  std::set<std::string> ids;
  for (const Allocation& allocation : OfContainer(pod, container)) {
    if (allocation.resource != resource) continue;
    for (const AllocatedDevice& device : allocation.devices) ids.insert(device.id);
  }
  return ids;
}

std::set<PodUid> PodDevices::pods() const {
  std::set<PodUid> pods;
  for (const auto& [pod, containers] : pods_) pods.insert(pod);
  return pods;
}

IdsByResource PodDevices::AllIds() const {
  IdsByResource ids;
  for (const auto& [pod, containers] : pods_) {
    for (const auto& [container, allocations] : containers) {
      for (const Allocation& allocation : allocations) {
        for (const AllocatedDevice& device : allocation.devices) {
          ids[allocation.resource].insert(device.id);
        }
      }
    }
  }
  return ids;
}

ContainerResult MergeAnswers(const std::string& container,
                             const std::vector<Allocation>& allocations) {
  const auto path = [](const auto& one) { return one.container_path; };
  ContainerResult result;
  result.name = container;
  for (const Allocation& allocation : allocations) {
    std::vector<std::string>& ids = result.devices[allocation.resource];
    for (const AllocatedDevice& device : allocation.devices) ids.push_back(device.id);
    std::sort(ids.begin(), ids.end());

    const AllocateAnswer& answer = allocation.answer;
    result.envs.insert(answer.envs.begin(), answer.envs.end());
    result.annotations.insert(answer.annotations.begin(), answer.annotations.end());
    AppendNew(result.nodes, answer.nodes, path);
    AppendNew(result.mounts, answer.mounts, path);
    AppendNew(result.cdi_devices, answer.cdi_devices, [](const std::string& name) { return name; });
  }
  return result;
}

}  // namespace switchyard::sim
