// SPDX-License-Identifier: Apache-2.0
#include "sim/kubelet/resource_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace switchyard::sim {

bool Resource::has_topology() const {
  return std::any_of(devices.begin(), devices.end(),
                     [](const auto& device) { return !device.second.numa_nodes.empty(); });
}

Status ResourceTable::Connect(const std::string& resource, const std::string& socket,
                              std::shared_ptr<PluginEndpoint> plugin, PluginOptions options) {
  Resource& it = resources_[resource];
  if (!socket.empty() && it.registered.contains(socket)) {
    return absl::AlreadyExistsError(absl::StrCat("device plugin already connected: ", socket));
  }
  it.registered[socket] = {plugin, options};
  it.plugin = std::move(plugin);
  it.options = options;
  it.stopped_at.reset();
  return OkStatus();
}

void ResourceTable::Disconnect(const std::string& resource, const std::string& socket,
                               absl::Duration now) {
  const auto found = resources_.find(resource);
  if (found == resources_.end()) return;
  Resource& it = found->second;
  if (it.registered.erase(socket) == 0) return;
  if (!it.registered.empty()) {  // kubelet takes any of them
    const Registered& other = it.registered.begin()->second;
    it.plugin = other.plugin;
    it.options = other.options;
    return;
  }
  it.unhealthy.merge(it.healthy);
  it.healthy.clear();
  it.stopped_at = now;
}

void ResourceTable::Update(const std::string& resource, const std::vector<PluginDevice>& snapshot) {
  Resource& it = resources_[resource];
  it.listed = true;
  it.devices.clear();
  it.healthy.clear();
  it.unhealthy.clear();
  for (const PluginDevice& device : snapshot) {
    it.devices[device.id] = device;
    (device.health == "Healthy" ? it.healthy : it.unhealthy).insert(device.id);
  }
}

absl::Duration ResourceTable::RemoveExpired(absl::Duration now, absl::Duration grace) {
  absl::Duration next = absl::InfiniteDuration();
  for (auto it = resources_.begin(); it != resources_.end();) {
    const Resource& resource = it->second;
    // A snapshot for a resource that was removed already: it has no endpoint at all.
    const bool orphaned = resource.plugin == nullptr && !resource.stopped_at;
    const absl::Duration left =
        resource.stopped_at ? *resource.stopped_at + grace - now : absl::InfiniteDuration();
    if (orphaned || left <= absl::ZeroDuration()) {
      it = resources_.erase(it);
      continue;
    }
    next = std::min(next, left);
    ++it;
  }
  return next;
}

void ResourceTable::Restore(const std::set<std::string>& listed, absl::Duration now) {
  resources_.clear();
  for (const std::string& name : listed) {
    Resource& it = resources_[name];
    it.listed = true;
    it.stopped_at = now;
  }
}

const Resource* ResourceTable::Find(const std::string& resource) const {
  const auto found = resources_.find(resource);
  return found == resources_.end() ? nullptr : &found->second;
}

}  // namespace switchyard::sim
