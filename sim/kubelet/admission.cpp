// SPDX-License-Identifier: Apache-2.0
// The admission half of the device manager: for each container and resource choose, call Allocate,
// record. The source facts are of manager.go in kubelet's devicemanager.
#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sim/kubelet/device_manager.h"

namespace switchyard::sim {

Status DeviceManager::Admit(PodUid pod, const PodSpec& spec, const std::set<std::string>& running) {
  IdsByResource reusable;
  for (const bool init : {true, false}) {
    for (const ContainerSpec& container : spec.containers) {
      if (container.init != init || running.contains(container.name)) continue;
      RETURN_IF_ERROR(AllocateContainer({pod, spec, container}, reusable));
    }
  }
  return OkStatus();
}

// What the topology manager does before each container's allocation.
Result<std::optional<NumaNodes>> DeviceManager::Align(const Target& target,
                                                      IdsByResource& reusable) {
  if (options_.topology == TopologyPolicy::kNone) return target.spec.numa_affinity;
  std::vector<TopologyHints> hints;
  for (const auto& [resource, required] : target.container.resources) {
    if (!Handles(resource)) continue;
    Reclaim();
    absl::MutexLock lock(&mutex_);
    const Resource* found = resources_.Find(resource);
    if (found == nullptr) continue;
    DeviceIds available = pod_devices_.Ids(target.pod, target.container.name, resource);
    DeviceIds reused;
    if (available.empty()) {
      const DeviceIds& used = in_use_[resource];
      std::set_difference(found->healthy.begin(), found->healthy.end(), used.begin(), used.end(),
                          std::inserter(available, available.end()));
      reused = reusable[resource];
    }
    hints.push_back(MakeHints(found->devices, available, reused, required));
  }
  return MergeHints(options_.topology, hints);
}

Status DeviceManager::AllocateContainer(Target target, IdsByResource& reusable) {
  ASSIGN_OR_RETURN(target.numa_affinity, Align(target, reusable));
  const ContainerSpec& container = target.container;
  std::vector<std::pair<std::string, int>> wanted(container.resources.begin(),
                                                  container.resources.end());
  std::shuffle(wanted.begin(), wanted.end(), random_);  // a map of Go
  bool reclaimed = false;
  bool allocated = false;
  for (const auto& [resource, required] : wanted) {
    if (!Handles(resource)) continue;
    if (!std::exchange(reclaimed, true)) Reclaim();
    ASSIGN_OR_RETURN(const bool is_new,
                     AllocateResource(target, resource, required, reusable[resource]));
    allocated |= is_new;
  }
  absl::MutexLock lock(&mutex_);
  // Once a container, and an error of it fails the pod.
  if (allocated) RETURN_IF_ERROR(WriteCheckpoint());
  // An init container's devices are free for the containers after it, and stop being so with the
  // first that takes them.
  for (const auto& [resource, required] : wanted) {
    DeviceIds ids = pod_devices_.Ids(target.pod, container.name, resource);
    if (container.init && !container.restartable) {
      reusable[resource].merge(ids);
    } else {
      for (const std::string& id : ids) reusable[resource].erase(id);
    }
  }
  return OkStatus();
}

Result<bool> DeviceManager::AllocateResource(const Target& target, const std::string& resource,
                                             int required, const DeviceIds& reusable) {
  ASSIGN_OR_RETURN(const std::optional<ChoiceInput> input,
                   PrepareChoice(target, resource, required, reusable));
  if (!input) return false;

  PreferFunction prefer;
  if (OffersPreferred(resource)) {
    prefer = [&](const PreferredRequest& request) { return CallPreferred(resource, request); };
  }
  const auto reserve = [&](const std::string& id) { Reserve(resource, id); };
  // As in kubelet an error in here leaves the reserved devices in use until the next rebuild.
  ASSIGN_OR_RETURN(const DeviceIds ids, ChooseDevices(*input, prefer, reserve, random_));

  Result<AllocateAnswer> answer = CallAllocate(resource, InRandomOrder(ids, random_));
  if (!answer.ok()) return std::move(answer).status();
  Record(target, resource, ids, *std::move(answer));
  changes_.Bump();
  return true;
}

Result<std::optional<ChoiceInput>> DeviceManager::PrepareChoice(const Target& target,
                                                                const std::string& resource,
                                                                int required,
                                                                const DeviceIds& reusable) {
  absl::MutexLock lock(&mutex_);
  const DeviceIds held = pod_devices_.Ids(target.pod, target.container.name, resource);
  if (!held.empty() && static_cast<int>(held.size()) != required) {
    return absl::FailedPreconditionError(absl::StrCat(
        "container ", target.container.name, " of pod ", target.spec.name, " asked for ",
        held.size(), " ", resource, " before and for ", required, " now"));
  }
  const Resource* found = resources_.Find(resource);
  if (found == nullptr || !found->listed) {
    return absl::UnavailableError(absl::StrCat("cannot allocate unregistered device ", resource));
  }
  if (found->healthy.empty()) {
    return absl::UnavailableError(
        absl::StrCat("no healthy devices present; cannot allocate unhealthy devices ", resource));
  }
  if (!std::includes(found->healthy.begin(), found->healthy.end(), held.begin(), held.end())) {
    return absl::UnavailableError(absl::StrCat(
        "previously allocated devices are no longer healthy; cannot allocate unhealthy devices ",
        resource));
  }
  if (!held.empty() || required == 0) return std::optional<ChoiceInput>();

  ChoiceInput input{.resource = resource,
                    .required = required,
                    .reusable = reusable,
                    .available = {},
                    .devices = found->devices,
                    .numa_affinity = target.numa_affinity};
  const DeviceIds& used = in_use_[resource];
  std::set_difference(found->healthy.begin(), found->healthy.end(), used.begin(), used.end(),
                      std::inserter(input.available, input.available.end()));
  return input;
}

Result<std::vector<std::string>> DeviceManager::CallPreferred(const std::string& resource,
                                                              const PreferredRequest& request) {
  PreferredCall call{.resource = resource,
                     .available = request.available,
                     .must_include = request.must_include,
                     .size = request.size,
                     .answer = {},
                     .error = {}};
  Result<std::shared_ptr<PluginEndpoint>> endpoint = Endpoint(resource);
  if (endpoint.ok()) log_.Count(&CallCounts::preferred);
  Result<std::vector<std::string>> answer =
      endpoint.ok() ? (*endpoint)->GetPreferredAllocation(request) : endpoint.status();
  if (answer.ok()) {
    call.answer = *answer;
  } else {
    call.error = std::string(answer.status().message());
    answer = Status(answer.status().code(),
                    absl::StrCat("device plugin GetPreferredAllocation rpc failed with err: ",
                                 answer.status().message()));
  }
  log_.Add(std::move(call));
  return answer;
}

Result<AllocateAnswer> DeviceManager::CallAllocate(const std::string& resource,
                                                   const std::vector<std::string>& ids) {
  Result<std::shared_ptr<PluginEndpoint>> endpoint = Endpoint(resource);
  if (endpoint.ok()) log_.Count(&CallCounts::allocate);
  Result<std::optional<AllocateAnswer>> answer =
      endpoint.ok() ? (*endpoint)->Allocate(ids) : endpoint.status();
  log_.Add(AllocateCall{resource, ids, std::string(answer.status().message())});
  if (!answer.ok()) {
    absl::MutexLock lock(&mutex_);
    in_use_ = pod_devices_.AllIds();
    return std::move(answer).status();
  }
  if (!*answer) {
    // kubelet restores nothing here: the devices stay in use until the next rebuild.
    return absl::InternalError("no containers return in allocation response");
  }
  return **std::move(answer);
}

Result<std::shared_ptr<PluginEndpoint>> DeviceManager::Endpoint(const std::string& resource) const {
  absl::MutexLock lock(&mutex_);
  const Resource* found = resources_.Find(resource);
  if (found == nullptr) {
    return absl::NotFoundError(absl::StrCat("unknown device plugin ", resource));
  }
  if (!found->connected()) {
    return absl::UnavailableError(absl::StrCat("endpoint ", resource, " has been stopped"));
  }
  return found->plugin;
}

bool DeviceManager::OffersPreferred(const std::string& resource) const {
  absl::MutexLock lock(&mutex_);
  const Resource* found = resources_.Find(resource);
  return found != nullptr && found->options.preferred_available;
}

void DeviceManager::Reserve(const std::string& resource, const std::string& id) {
  absl::MutexLock lock(&mutex_);
  in_use_[resource].insert(id);
}

void DeviceManager::Record(const Target& target, const std::string& resource, const DeviceIds& ids,
                           AllocateAnswer answer) {
  absl::MutexLock lock(&mutex_);
  Allocation allocation{.resource = resource, .devices = {}, .answer = std::move(answer)};
  const Resource* found = resources_.Find(resource);
  for (const std::string& id : ids) {
    std::vector<int> nodes;
    if (found != nullptr && found->devices.contains(id)) {
      nodes = found->devices.at(id).numa_nodes;
    }
    allocation.devices.push_back({id, std::move(nodes)});
  }
  pod_devices_.Insert(target.pod, target.container.name, std::move(allocation));
}

}  // namespace switchyard::sim
