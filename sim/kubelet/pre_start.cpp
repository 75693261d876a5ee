// SPDX-License-Identifier: Apache-2.0
// What the device manager does before a container starts: GetDeviceRunContainerOptions and
// callPreStartContainerIfNeeded of kubelet's devicemanager/manager.go.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sim/kubelet/checkpoint.h"
#include "sim/kubelet/device_manager.h"

namespace switchyard::sim {

Result<bool> DeviceManager::PreStart(PodUid pod, const ContainerSpec& container) {
  bool unknown = false;
  for (const auto& [resource, required] : container.resources) {
    if (required == 0 || !Handles(resource)) continue;
    RETURN_IF_ERROR(PreStartResource(pod, container, resource));
    absl::MutexLock lock(&mutex_);
    unknown |= active_.contains(pod) && pod_devices_.Ids(pod, container.name, resource).empty();
  }
  return unknown;
}

Status DeviceManager::PreStartResource(PodUid pod, const ContainerSpec& container,
                                       const std::string& resource) {
  std::vector<std::string> ids;
  {
    absl::MutexLock lock(&mutex_);
    const Resource* found = resources_.Find(resource);
    if (found == nullptr) {
      return absl::NotFoundError(
          absl::StrCat("endpoint not found in cache for a registered resource: ", resource));
    }
    // Also where the plugin is not back since kubelet's start: its options are not known then.
    if (!found->options.pre_start_required) return OkStatus();
    const DeviceIds held = pod_devices_.Ids(pod, container.name, resource);
    if (held.empty()) {
      return absl::NotFoundError(absl::StrCat("no devices found allocated in local cache for pod ",
                                              PodUidText(pod), ", container ", container.name,
                                              ", resource ", resource));
    }
    ids.assign(held.begin(), held.end());
    std::shuffle(ids.begin(), ids.end(), pre_start_random_);  // a set of Go
  }
  const Result<std::shared_ptr<PluginEndpoint>> endpoint = Endpoint(resource);
  if (endpoint.ok()) log_.Count(&CallCounts::pre_start);
  const Status status = endpoint.ok() ? (*endpoint)->PreStartContainer(ids) : endpoint.status();
  log_.Add(PreStartCall{resource, ids, std::string(status.message())});
  if (status.ok()) return OkStatus();
  return Status(status.code(), absl::StrCat("device plugin PreStartContainer rpc failed with err: ",
                                            status.message()));
}

Status DeviceManager::Reallocate(PodUid pod, const PodSpec& spec, const ContainerSpec& container) {
  IdsByResource none_reusable;
  return AllocateContainer({pod, spec, container}, none_reusable);
}

}  // namespace switchyard::sim
