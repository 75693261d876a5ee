// SPDX-License-Identifier: Apache-2.0
#pragma once

// A kubelet, as a device plugin and a reader of PodResources see it: registration with dial-back,
// ListAndWatch, the preferred-allocation sequence, Allocate at admission, PreStartContainer before
// each start of a container, the checkpoint, restarts of its own and of the node. It has no
// scheduler: a pod that is added is admitted or Failed at once. Any thread, except that Start,
// Stop, Restart and Reboot are for one thread at a time. The clock must outlive it.
//
// What it does is what kubelet 1.37 does; where kubelets differ or a behaviour surprises, the
// comment at that place names the fact.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status.h"
#include "sim/kubelet/call_log.h"
#include "sim/kubelet/pod.h"
#include "sim/kubelet/topology.h"

namespace switchyard::sim {

struct KubeletOptions {
  std::string device_plugins_folder = {};  // kubelet.sock and the plugins' sockets; made if missing
  std::string pod_resources_folder = {};   // kubelet.sock of PodResources; empty: not served
  std::uint64_t seed = 1;                  // of every random order and choice
  Clock* clock = nullptr;                  // null: the machine's
  absl::Duration dial_timeout = absl::Seconds(10);       // of the dial-back; always real time
  absl::Duration endpoint_grace = absl::Minutes(5);      // until a stopped resource is removed
  absl::Duration pre_start_timeout = absl::Seconds(30);  // of PreStartContainer; always real time
  absl::Duration start_retry = absl::Seconds(10);        // a container that could not be started
  bool limit_pod_resources = true;                       // 100 calls a second, burst of 10
  TopologyPolicy topology = TopologyPolicy::kNone;       // for each container by itself
  // As kubelet up to 1.35: a stream that ends closes the newest plugin of the resource, whoever's
  // stream it was. Otherwise plugins are told apart by resource and socket path.
  bool plugins_by_name_only = false;
};

class Kubelet {
 public:
  explicit Kubelet(KubeletOptions options);
  ~Kubelet();  // stops
  Kubelet(const Kubelet&) = delete;
  Kubelet& operator=(const Kubelet&) = delete;

  // Deletes every socket in the folder of the plugins (files and folders stay) and serves anew. All
  // it knows of devices is what its checkpoint there says: a missing or damaged one says nothing.
  // kFailedPrecondition if that file is a real kubelet's.
  [[nodiscard]] Status Start();
  // Closes every connection; calls in flight end with an error. Pods are remembered. A dial-back
  // that finds nobody is waited for, up to dial_timeout.
  void Stop();
  // Stop and Start, containers run on. Resources come back with no devices until their plugin
  // registers again.
  [[nodiscard]] Status Restart();
  // The node restarts: Stop, every container is dead, Start. Its pods wait for ReadmitPod. A real
  // kubelet admits them as soon as it hears of them from the API server, plugin or no plugin; here
  // it is the caller's to say when.
  [[nodiscard]] Status Reboot();

  // Admits a pod and starts its containers; blocks as long as the plugin's Allocate and
  // PreStartContainer do. One admission at a time, as kubelet. A container that could not be
  // started waits and says why; it is tried again every start_retry.
  PodStatus AddPod(const PodSpec& spec);
  // Admission again, as a kubelet that has started does with each pod, and the start of what does
  // not run: no new Allocate, the answer of then is used. Containers that run are left alone;
  // otherwise the container's resources must be registered and its devices healthy, or the pod is
  // rejected for good. A resource that kubelet knows nothing of (its checkpoint is lost and no
  // plugin is back) is not looked at: the container starts without it. kNotFound if there is no
  // such active pod, kUnavailable if kubelet is stopped.
  [[nodiscard]] Result<PodStatus> ReadmitPod(absl::string_view ns, absl::string_view name);
  // The pod's containers die (init containers stay done) and start again: no admission, but
  // PreStartContainer; a new Allocate for a resource of which kubelet has no record.
  [[nodiscard]] Result<PodStatus> RestartContainers(absl::string_view ns, absl::string_view name);
  // Tries at once what waits to be started, as every start_retry.
  void RetryStarts();
  // Deletes the checkpoint, as an administrator would. kubelet notices at its next start, if
  // nothing it writes before (a device list, an admission) makes the file again.
  [[nodiscard]] Status LoseCheckpoint();
  // The pod has ended. As in kubelet its devices are free only once something makes it look: the
  // next admission, or a PodResources List. Waits for the pod's own admission. False if there is
  // none.
  bool RemovePod(absl::string_view ns, absl::string_view name);

  [[nodiscard]] std::vector<PodReport> Pods() const;  // Failed ones included, by namespace and name
  [[nodiscard]] std::map<std::string, ResourceReport> Resources() const;
  [[nodiscard]] const CallLog& calls() const;

  // Blocks until `done` says so, asking again at every change of state (registration, stream,
  // snapshot, pod, call, removal of a resource); false after `timeout` of real time. `done` may
  // call anything here that does not block.
  bool WaitFor(const std::function<bool()>& done, absl::Duration timeout) const;

  // Faults. They outlive a restart.
  void FailRegisters(int next);    // the next ones are refused with an error
  void WithholdStreams(int next);  // the next ones succeed, ListAndWatch is never opened
  void HoldDialBack(bool hold);    // Register waits before it dials back; false lets all go on

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace switchyard::sim
