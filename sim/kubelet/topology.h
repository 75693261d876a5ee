// SPDX-License-Identifier: Apache-2.0
#pragma once

// kubelet's topology manager, container by container, with the device manager as its only provider
// of hints (cm/topologymanager and devicemanager/topology_hints.go). A hint is a set of NUMA nodes
// that has enough devices; a preferred one has as few nodes as would do on an idle machine. Pure;
// any thread.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/status.h"
#include "sim/kubelet/device_chooser.h"
#include "sim/kubelet/endpoint.h"

namespace switchyard::sim {

enum class TopologyPolicy { kNone, kBestEffort, kRestricted, kSingleNumaNode };

// By kubelet's names of them; "" is "none". kInvalidArgument for another.
[[nodiscard]] Result<TopologyPolicy> ParseTopologyPolicy(absl::string_view name);

using NumaNodes = std::set<int>;

struct TopologyHint {
  std::optional<NumaNodes> nodes = {};  // absent: any
  bool preferred = false;
};

// Of one resource. Empty: no nodes have enough.
using TopologyHints = std::vector<TopologyHint>;

// `reusable` devices must all be within a hint's nodes, and count with the available ones. A
// resource none of whose devices has a node prefers nothing: one preferred hint without nodes.
[[nodiscard]] TopologyHints MakeHints(const std::map<std::string, PluginDevice>& devices,
                                      const DeviceIds& available, const DeviceIds& reusable,
                                      int required);

// What a container's resources agree on, one list of hints each: the nodes to align to, or none.
// An error if the policy refuses the container; IsTopologyError tells it from others.
[[nodiscard]] Result<std::optional<NumaNodes>> MergeHints(TopologyPolicy policy,
                                                          const std::vector<TopologyHints>& all);
[[nodiscard]] bool IsTopologyError(const Status& status);

}  // namespace switchyard::sim
