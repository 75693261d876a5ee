// SPDX-License-Identifier: Apache-2.0
#pragma once

// kubelet's checkpoint of its device manager: which container has which devices with the plugin's
// answer, and which resources were registered. The file's name and JSON layout are kubelet's own
// (pkg/kubelet/cm/devicemanager/checkpoint); its checksum is a hash of a Go value printed, for
// which the simulator has one of its own. Blocking; one thread at a time.

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "base/status.h"
#include "sim/kubelet/pod_devices.h"

namespace switchyard::sim {

inline constexpr char kCheckpointFile[] = "kubelet_internal_checkpoint";

struct Checkpoint {
  PodDevices pods;
  IdsByResource registered;  // resource -> the ids that were healthy
};

// As kubelet writes a pod's UID: an RFC 4122 text.
[[nodiscard]] std::string PodUidText(PodUid pod);

[[nodiscard]] std::string CheckpointText(const Checkpoint& checkpoint);
// kDataLoss: no checkpoint, or damaged; kFailedPrecondition: whole, but with another checksum than
// ours, so most likely a real kubelet's.
[[nodiscard]] Result<Checkpoint> ParseCheckpoint(absl::string_view text);

// As kubelet does: a hidden temporary file beside it, renamed over it. Unlike kubelet it does not
// wait for the disk: simulated power does not fail.
[[nodiscard]] Status WriteCheckpoint(const std::string& path, const Checkpoint& checkpoint);
// nullopt: there is none. Errors name the path.
[[nodiscard]] Result<std::optional<Checkpoint>> ReadCheckpoint(const std::string& path);

}  // namespace switchyard::sim
