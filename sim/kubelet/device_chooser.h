// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which devices a container gets: kubelet's sequence around GetPreferredAllocation, step by step.
// Pure but for the two functions it is given; no lock is held while it runs.

#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "sim/kubelet/endpoint.h"

namespace switchyard::sim {

using Random = std::mt19937_64;
using DeviceIds = std::set<std::string>;

struct ChoiceInput {
  std::string resource;                         // for messages
  int required = 0;                             // at least 1
  DeviceIds reusable;                           // of the pod's init containers that have ended
  DeviceIds available;                          // healthy and not in use
  std::map<std::string, PluginDevice> devices;  // for their topology
  std::optional<std::set<int>> numa_affinity;   // absent: no hint
};

// Asks the plugin; null if it does not offer GetPreferredAllocation.
using PreferFunction = std::function<Result<std::vector<std::string>>(const PreferredRequest&)>;
// Told of each device as soon as it is taken, before the next question to the plugin.
using ReserveFunction = std::function<void(const std::string& id)>;

// Exactly `required` ids, or an error that fails the pod's admission. Devices that were reserved
// before an error stay reserved: it is the caller's to restore them.
[[nodiscard]] Result<DeviceIds> ChooseDevices(const ChoiceInput& input,
                                              const PreferFunction& prefer,
                                              const ReserveFunction& reserve, Random& random);

// Go's maps and sets have no order: neither has any list that a plugin gets.
[[nodiscard]] std::vector<std::string> InRandomOrder(const DeviceIds& ids, Random& random);

}  // namespace switchyard::sim
