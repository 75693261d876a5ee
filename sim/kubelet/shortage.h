// SPDX-License-Identifier: Apache-2.0
#pragma once

// The scheduler's arithmetic, which kubelet repeats for a new pod once its devices are allocated
// (generalFilter in its lifecycle/predicate.go): pods count with what they ask for, whatever
// devices kubelet knows of, so that a kubelet that lost its checkpoint refuses what is too much.
// Pure.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/kubelet/pod.h"

namespace switchyard::sim {

struct Shortage {
  std::string resource = {};
  std::string message = {};  // kubelet's
};

// The first resource of which `pod` beside the `others` asks for more than there is; nullopt if it
// fits. Resources that are not in `node` are not looked at.
[[nodiscard]] std::optional<Shortage> FindShortage(
    const PodSpec& pod, const std::vector<PodSpec>& others,
    const std::map<std::string, ResourceReport>& node);

}  // namespace switchyard::sim
