// SPDX-License-Identifier: Apache-2.0
#include "sim/kubelet/device_manager.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sim/kubelet/checkpoint.h"

namespace switchyard::sim {

DeviceManager::DeviceManager(DeviceManagerOptions options, std::function<void()> endpoint_stopped,
                             Clock& clock, Changes& changes, CallLog& log)
    : options_(std::move(options)),
      endpoint_stopped_(std::move(endpoint_stopped)),
      clock_(clock),
      changes_(changes),
      log_(log),
      random_(options_.seed) {}

Status DeviceManager::Connected(const std::string& resource, const std::string& socket,
                                std::shared_ptr<PluginEndpoint> plugin, PluginOptions options) {
  {
    absl::MutexLock lock(&mutex_);
    RETURN_IF_ERROR(resources_.Connect(resource, socket, std::move(plugin), options));
  }
  changes_.Bump();
  return OkStatus();
}

void DeviceManager::Disconnected(const std::string& resource, const std::string& socket) {
  {
    absl::MutexLock lock(&mutex_);
    resources_.Disconnect(resource, socket, clock_.Monotonic());
  }
  endpoint_stopped_();
  changes_.Bump();
}

void DeviceManager::Update(const std::string& resource, const std::vector<PluginDevice>& snapshot) {
  {
    absl::MutexLock lock(&mutex_);
    resources_.Update(resource, snapshot);
    (void)WriteCheckpoint();  // kubelet logs an error of this and goes on
  }
  changes_.Bump();
}

absl::Duration DeviceManager::RemoveExpired() {
  size_t removed;
  absl::Duration next;
  {
    absl::MutexLock lock(&mutex_);
    const size_t before = resources_.all().size();
    next = resources_.RemoveExpired(clock_.Monotonic(), options_.grace);
    removed = before - resources_.all().size();
    if (removed > 0) (void)WriteCheckpoint();
  }
  if (removed > 0) changes_.Bump();
  return next;
}

Status DeviceManager::Restart() {
  Result<std::optional<Checkpoint>> read = ReadCheckpoint(options_.checkpoint);
  if (absl::IsFailedPrecondition(read.status())) return std::move(read).status();
  Checkpoint known;
  if (read.ok() && read->has_value()) known = **std::move(read);
  std::set<std::string> registered;
  for (const auto& [resource, ids] : known.registered) registered.insert(resource);
  {
    absl::MutexLock lock(&mutex_);
    resources_.Restore(registered, clock_.Monotonic());
    pod_devices_ = std::move(known.pods);
    in_use_ = pod_devices_.AllIds();
  }
  changes_.Bump();
  return OkStatus();
}

Status DeviceManager::WriteCheckpoint() {
  Checkpoint checkpoint{.pods = pod_devices_, .registered = {}};
  for (const auto& [name, resource] : resources_.all()) {
    if (resource.listed) checkpoint.registered[name] = resource.healthy;
  }
  return sim::WriteCheckpoint(options_.checkpoint, checkpoint);
}

PodUid DeviceManager::LastPod() const {
  absl::MutexLock lock(&mutex_);
  const auto& pods = pod_devices_.all();
  return pods.empty() ? 0 : pods.rbegin()->first;
}

void DeviceManager::SetActive(PodUid pod, bool active) {
  absl::MutexLock lock(&mutex_);
  if (active) {
    active_.insert(pod);
  } else {
    active_.erase(pod);
  }
}

void DeviceManager::Reclaim() {
  {
    absl::MutexLock lock(&mutex_);
    std::set<PodUid> ended = pod_devices_.pods();
    for (const PodUid pod : active_) ended.erase(pod);
    if (ended.empty()) return;
    pod_devices_.Delete(ended);
    in_use_ = pod_devices_.AllIds();
  }
  changes_.Bump();
}

bool DeviceManager::Handles(const std::string& resource) {
  RemoveExpired();
  absl::MutexLock lock(&mutex_);
  const Resource* found = resources_.Find(resource);
  return (found != nullptr && found->listed) || in_use_.contains(resource);
}

std::vector<Allocation> DeviceManager::Allocations(PodUid pod, const std::string& container) const {
  absl::MutexLock lock(&mutex_);
  return pod_devices_.OfContainer(pod, container);
}

std::map<std::string, ResourceReport> DeviceManager::Report() {
  RemoveExpired();
  absl::MutexLock lock(&mutex_);
  std::map<std::string, ResourceReport> report;
  for (const auto& [name, resource] : resources_.all()) {
    const auto used = in_use_.find(name);
    ResourceReport& out = report[name];
    out.capacity = static_cast<int>(resource.healthy.size() + resource.unhealthy.size());
    out.allocatable = static_cast<int>(resource.healthy.size());
    out.connected = resource.connected();
    for (const auto& [id, device] : resource.devices) {
      const bool in_use = used != in_use_.end() && used->second.contains(id);
      for (const bool healthy : {true, false}) {
        if (!(healthy ? resource.healthy : resource.unhealthy).contains(id)) continue;
        out.devices.push_back({id, healthy, device.numa_nodes, in_use});
      }
    }
  }
  return report;
}

}  // namespace switchyard::sim
