// SPDX-License-Identifier: Apache-2.0
#pragma once

// The simulator as a process: a SimNode with its control socket, until SIGTERM or SIGINT. The
// calling process must have no other threads yet.

#include <functional>

#include "base/status.h"
#include "sim/node/record.h"
#include "sim/node/sim_node.h"

namespace switchyard::sim {

// Runs in this process; `ready` is called once everything listens.
[[nodiscard]] Status RunNode(SimNodeOptions options,
                             const std::function<void(const SimNode&)>& ready);

// What `up` starts in the background: the node of the folder's record, in its namespaces. Writes
// "ready" or the error to `ready_fd` and closes it.
[[nodiscard]] Status RunDaemon(const NodePaths& paths, int ready_fd);

}  // namespace switchyard::sim
