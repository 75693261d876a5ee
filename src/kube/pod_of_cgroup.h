// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which pod a process belongs to, by its cgroup's path as kubelet names it: "pod<UID>" below
// "kubepods" (driver cgroupfs), "kubepods-burstable-pod<UID, _ for ->.slice" (driver systemd), for
// every runtime, Kata's monitor in the pod's own cgroup included. Pure; any thread.

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace switchyard::kube {

struct PodOfCgroup {
  std::string uid;  // as the API has it, with hyphens; of a static pod 32 hexadecimal digits
  // "Guaranteed", "Burstable" or "BestEffort"; empty where the path does not say so: one seen from
  // a cgroup namespace begins with "/.." and may lack the part before the pod.
  std::string qos;

  bool operator==(const PodOfCgroup&) const = default;
};

// Nothing for every other path, Kata's /kata_overhead/<sandbox> too: that names no pod.
[[nodiscard]] std::optional<PodOfCgroup> PodOf(absl::string_view cgroup);

}  // namespace switchyard::kube
