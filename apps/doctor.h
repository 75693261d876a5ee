// SPDX-License-Identifier: Apache-2.0
#pragma once

// The checks of `switchyard doctor`. Each looks, changes nothing, and says what it found and how to
// put it right. A check that can't look says so as its finding: none stops another.

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "agent/config.h"
#include "fabric/fabric_reader.h"

namespace switchyard::apps {

enum class Verdict { kOk, kWarning, kError };

struct Finding {
  absl::string_view check;  // "iommu"
  Verdict verdict = Verdict::kOk;
  std::string message;
  std::string fix;  // empty when there is nothing to do
};

using Findings = std::vector<Finding>;

// sysfs, IOMMU, GPUs, iommufd.
void CheckHost(const agent::Config& config, Findings& findings);
// kubelet's folder and sockets, and other plugins in it.
void CheckKubelet(const agent::Config& config, Findings& findings);
// The API server, where this is a pod with a token: asks for its version.
void CheckCluster(const agent::Config& config, Findings& findings);
// Module map, libnvfm, Fabric Manager and its table, and whether mode off is right here.
void CheckFabric(const agent::Config& config, fabric::FabricReader& reader, Findings& findings);
// State folder, the owner's lock and the operator socket, the metrics address.
void CheckAgent(const agent::Config& config, Findings& findings);

// Whether a socket in kubelet's folder has the name that one of the plugins this agent replaces
// gives it: kubevirt-GH100_H100_SXM5_80GB.sock, but not KubeVirt's own kubevirt-kvm.sock.
[[nodiscard]] bool IsPredecessorSocket(absl::string_view file_name);

}  // namespace switchyard::apps
