// SPDX-License-Identifier: Apache-2.0
#pragma once

// What kubelet's ids mean on this node: an id is a PCI address, or (Kata) the N of vfioN or the
// number of an IOMMU group. Any thread.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "sim/node/sim_node.h"

namespace switchyard::sim {

// The module of the GPU that kubelet calls `id`; nothing if it is no GPU of the board.
[[nodiscard]] std::optional<int> ModuleOfId(const SimNode& node, const std::string& id);

// Module -> "namespace/name" of the admitted pod that has it.
[[nodiscard]] std::map<int, std::string> HoldersOfModules(const SimNode& node);

// The one resource of GPUs that a plugin has registered; kNotFound if there is none,
// kInvalidArgument, naming them, if there are several.
[[nodiscard]] Result<std::string> OnlyGpuResource(const SimNode& node);

// "modules 5, 7: partition 5", or "modules 1, 2: no partition" for a set that is none.
[[nodiscard]] std::string DescribeModules(const SimNode& node, const std::vector<int>& modules);

}  // namespace switchyard::sim
