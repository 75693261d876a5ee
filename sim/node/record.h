// SPDX-License-Identifier: Apache-2.0
#pragma once

// What `up` did, so that `down` can undo it, also after the simulator was killed: sim.json in the
// node's folder, written before anything else is made. And who runs the node: the process that
// holds the lock on the file "pid". Blocking; one thread at a time.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "sim/node/paths.h"

namespace switchyard::sim {

struct Record {
  std::string board;
  std::string driver;
  std::uint64_t seed = 1;
  bool iommufd = false;
  bool namespaces = false;                // of its own: mounts and network; tmpfs on root/
  std::vector<std::string> made_folders;  // mount points on the host that were not there before

  friend bool operator==(const Record&, const Record&) = default;
};

[[nodiscard]] Status WriteRecord(const NodePaths& paths, const Record& record);
// kNotFound: the folder holds no simulated node.
[[nodiscard]] Result<Record> ReadRecord(const NodePaths& paths);

// The simulator that runs the node now, if any.
[[nodiscard]] std::optional<pid_t> RunningSimulator(const NodePaths& paths);

}  // namespace switchyard::sim
