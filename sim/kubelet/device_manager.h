// SPDX-License-Identifier: Apache-2.0
#pragma once

// kubelet's device manager: what plugins offer, what is in use, and the admission of a pod's
// containers; and what it does before a container starts. No gRPC: plugins are PluginEndpoints. Any
// thread, but one admission at a time. The lock is free during calls to a plugin.
//
// kubelet keeps two records: what was allocated to whom, and, derived from it, which ids are in
// use. The second is rebuilt from the first whenever the devices of an ended pod are reclaimed; a
// device that was chosen while its Allocate is still running stands only in the second, so a
// rebuild at that moment makes it look free, and the next pod can get it too (kubernetes#137534).
// So here.
//
// The first record is kept in the checkpoint, which a restart reads. kubelet writes it with each
// device list, with each container that was given devices and when a resource is removed; not when
// it reclaims, so an ended pod's devices come back with a restart, until the next look.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/status.h"
#include "sim/kubelet/call_log.h"
#include "sim/kubelet/changes.h"
#include "sim/kubelet/device_chooser.h"
#include "sim/kubelet/endpoint.h"
#include "sim/kubelet/pod.h"
#include "sim/kubelet/pod_devices.h"
#include "sim/kubelet/resource_table.h"
#include "sim/kubelet/topology.h"

namespace switchyard::sim {

struct DeviceManagerOptions {
  std::uint64_t seed = 1;
  absl::Duration grace = absl::Minutes(5);
  TopologyPolicy topology = TopologyPolicy::kNone;
  std::string checkpoint = {};  // path of the file; its folder exists once something is registered
};

class DeviceManager {
 public:
  // `endpoint_stopped`: RemoveExpired has a new deadline; called without a lock held. All
  // references must outlive the manager.
  DeviceManager(DeviceManagerOptions options, std::function<void()> endpoint_stopped, Clock& clock,
                Changes& changes, CallLog& log);

  // What the plugins' connections report; ResourceTable says what comes of it.
  [[nodiscard]] Status Connected(const std::string& resource, const std::string& socket,
                                 std::shared_ptr<PluginEndpoint> plugin, PluginOptions options);
  void Disconnected(const std::string& resource, const std::string& socket);
  void Update(const std::string& resource, const std::vector<PluginDevice>& snapshot);

  // Removes resources whose plugin is gone for the grace time; how long until the next is due.
  // Handles and Report do so first: they are right at any time of the clock.
  absl::Duration RemoveExpired();
  // kubelet starts: it knows what its checkpoint says and nothing else. Without one, or with a
  // damaged one, it knows nothing; with a real kubelet's, kFailedPrecondition.
  [[nodiscard]] Status Restart();

  // A pod counts as active from before its admission until it ends or is rejected.
  void SetActive(PodUid pod, bool active);
  // Frees what pods that are no longer active hold. See above.
  void Reclaim();
  // kubelet leaves resources that no plugin ever registered to others.
  [[nodiscard]] bool Handles(const std::string& resource);
  // Chooses and allocates for every container, but for those that run: kubelet skips them when it
  // starts beside running containers. The error's message is the one kubelet gives.
  [[nodiscard]] Status Admit(PodUid pod, const PodSpec& spec,
                             const std::set<std::string>& running = {});

  // Before each start of a container: PreStartContainer for each of its resources whose plugin
  // wants it (a resource that no plugin has registered since kubelet's start wants nothing). True:
  // nothing is recorded for one of them, so Reallocate. Any thread.
  [[nodiscard]] Result<bool> PreStart(PodUid pod, const ContainerSpec& container);
  // As an admission, of one container.
  [[nodiscard]] Status Reallocate(PodUid pod, const PodSpec& spec, const ContainerSpec& container);

  // The greatest of the recorded pods; 0 if there is none.
  [[nodiscard]] PodUid LastPod() const;

  [[nodiscard]] std::vector<Allocation> Allocations(PodUid pod, const std::string& container) const;
  [[nodiscard]] std::map<std::string, ResourceReport> Report();

 private:
  struct Target {  // one container of the pod under admission
    PodUid pod;
    const PodSpec& spec;
    const ContainerSpec& container;
    std::optional<NumaNodes> numa_affinity = {};  // what the topology manager decided
  };
  Status AllocateContainer(Target target, IdsByResource& reusable);
  Result<std::optional<NumaNodes>> Align(const Target& target, IdsByResource& reusable);
  // Whether it has new devices.
  Result<bool> AllocateResource(const Target& target, const std::string& resource, int required,
                                const DeviceIds& reusable);
  // nullopt: the container already has its devices.
  Result<std::optional<ChoiceInput>> PrepareChoice(const Target& target,
                                                   const std::string& resource, int required,
                                                   const DeviceIds& reusable);
  Result<std::vector<std::string>> CallPreferred(const std::string& resource,
                                                 const PreferredRequest& request);
  Result<AllocateAnswer> CallAllocate(const std::string& resource,
                                      const std::vector<std::string>& ids);
  Status PreStartResource(PodUid pod, const ContainerSpec& container, const std::string& resource);
  // Under the lock, so that who sees a change finds it in the file too.
  Status WriteCheckpoint() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The endpoint to call; an error if it is stopped.
  Result<std::shared_ptr<PluginEndpoint>> Endpoint(const std::string& resource) const;
  bool OffersPreferred(const std::string& resource) const;
  void Reserve(const std::string& resource, const std::string& id);
  void Record(const Target& target, const std::string& resource, const DeviceIds& ids,
              AllocateAnswer answer);

  const DeviceManagerOptions options_;
  const std::function<void()> endpoint_stopped_;
  Clock& clock_;
  Changes& changes_;
  CallLog& log_;
  Random random_;  // the admitting thread's

  mutable absl::Mutex mutex_;
  ResourceTable resources_ ABSL_GUARDED_BY(mutex_);
  PodDevices pod_devices_ ABSL_GUARDED_BY(mutex_);
  IdsByResource in_use_ ABSL_GUARDED_BY(mutex_);
  std::set<PodUid> active_ ABSL_GUARDED_BY(mutex_);
  Random pre_start_random_ ABSL_GUARDED_BY(mutex_){1};
};

}  // namespace switchyard::sim
