// SPDX-License-Identifier: Apache-2.0
#pragma once

// Starting and ending a simulated node in the background, and running commands inside it. What Up
// makes, Down removes, also when the simulator was killed in between. Blocking; before the process
// has threads.

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "sim/node/paths.h"

namespace switchyard::sim {

struct UpOptions {
  std::string board;
  std::string driver = "vfio-pci";
  bool iommufd = false;
  std::uint64_t seed = 1;
};

struct UpReport {
  bool namespaces = false;  // false: not root, or not allowed to
};

// Returns once the node is ready. kAlreadyExists, saying what to do, if the folder is not empty.
[[nodiscard]] Result<UpReport> Up(const NodePaths& paths, const UpOptions& options);

struct DownReport {
  bool found = false;  // there was a simulated node
  bool was_running = false;
  std::vector<std::string> left;  // folders on the host that could not be removed
};

// kFailedPrecondition if the folder is something else than a simulated node.
[[nodiscard]] Result<DownReport> Down(const NodePaths& paths);

// Replaces this process by `command`, in the node's namespaces, with its vendor libraries in front
// of the loader's search and SWITCHYARD_PATHS_HOST_ROOT set. Returns only on failure.
[[nodiscard]] Status ExecInside(const NodePaths& paths, const std::vector<std::string>& command);

}  // namespace switchyard::sim
