// SPDX-License-Identifier: Apache-2.0
#pragma once

// The assignment view from kubelet's PodResources API v1: which pod has which of our devices. A
// fresh connection a call, since kubelet's socket is new after each of its restarts. kubelet
// answers 100 calls a second for all its clients together: one it refuses for that is repeated
// within the deadline. Read by one caller at a time, StillHas from any
// thread.

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status.h"
#include "kube/catalogue.h"
#include "kube/socket_files.h"
#include "tenancy/assignments.h"

namespace switchyard::kube {

class PodResourcesClient final : public tenancy::AssignmentSource {
 public:
  struct Options {
    std::string socket = "/var/lib/kubelet/pod-resources/kubelet.sock";
    absl::Duration timeout = absl::Seconds(2);  // of one call, its repetitions included
    std::string node_name = {};                 // Kubernetes' name of this node
  };

  // `catalogue` translates device ids to addresses. Both must outlive the client.
  PodResourcesClient(Options options, const Catalogue& catalogue, Clock& clock);

  // Owners are {"pod", "namespace/name"}. Resources and ids that are not ours are left out. Errors
  // carry kubelet's code and name the socket.
  //
  // Whole is an answer that names a pod, and every later one of the same kubelet: it has heard of
  // its pods from the API server, and the last may go. A static pod does not count, kubelet has it
  // from a file; its name ends with "-" and the node's. A kubelet that starts makes its socket
  // anew.
  Result<tenancy::AssignmentView> Read() override;

  // kubelet's Get for the pod of that name, whoever it is now. Unlike List it recalculates nothing,
  // so it may run beside an Allocate, and it does not ask whether the pod still runs:
  //   true   also of a pod that has ended, until kubelet reclaims its devices, which it does before
  //          it chooses devices for another pod;
  //   false  no pod of that name, or it has none of these devices in a container or sidecar. Also
  //          of a pod that has them in an ordinary init container only (Get shows none of those),
  //          and of every pod once kubelet has lost its checkpoint, be its VM running or not: it
  //          says nothing of processes;
  //   error  no answer, a kubelet without Get (gate KubeletPodResourcesGet, on from 1.34), an owner
  //          that is no pod, or a pod with devices under our names that are none of today's.
  Result<bool> StillHas(const tenancy::Owner& owner, std::span<const PciAddress> devices) override;

 private:
  const Options options_;
  const Catalogue& catalogue_;
  Clock& clock_;
  std::optional<SocketId>
      knowing_;  // of the kubelet that named a pod; guarded by Read's one caller
};

}  // namespace switchyard::kube
