// SPDX-License-Identifier: Apache-2.0
#pragma once

// The assignment view from kubelet's PodResources API v1: which pod has which of our devices. A
// fresh connection a call, since kubelet's socket is new after each of its restarts. One caller at
// a time.

#include <string>

#include "absl/time/time.h"
#include "base/status.h"
#include "kube/catalogue.h"
#include "tenancy/assignments.h"

namespace switchyard::kube {

class PodResourcesClient final : public tenancy::AssignmentSource {
 public:
  struct Options {
    std::string socket = "/var/lib/kubelet/pod-resources/kubelet.sock";
    absl::Duration timeout = absl::Seconds(2);
  };

  // `catalogue` translates device ids to addresses and must outlive the client.
  PodResourcesClient(Options options, const Catalogue& catalogue);

  // Owners are {"pod", "namespace/name"}. Resources and ids that are not ours are left out. Errors
  // carry kubelet's code and name the socket.
  Result<tenancy::Assignments> Read() override;

 private:
  const Options options_;
  const Catalogue& catalogue_;
};

}  // namespace switchyard::kube
