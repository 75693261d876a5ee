// SPDX-License-Identifier: Apache-2.0
#pragma once

// The simulator's own mounts and network, as root: inside them the paths that are fixed on a node
// (/var/lib/kubelet, /run/nvidia-fabricmanager, ...) are the simulated node's, and so is Fabric
// Manager's TCP port. The machine sees nothing of it but empty folders where there were none.
// Blocking; before the process has threads.

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "sim/node/paths.h"

namespace switchyard::sim {

// True if this process may make namespaces and mounts; tried in a child.
[[nodiscard]] bool CanMakeNamespaces();

struct BoundFolder {
  std::string from;  // of the simulated node
  std::string to;    // where programs look for it
};
[[nodiscard]] std::vector<BoundFolder> BoundFolders(const NodePaths& paths);

// Makes the missing ones of `folders` on the host, and their parents; returns those that it or
// another simulator made, in order.
[[nodiscard]] Result<std::vector<std::string>> MakeMountPoints(
    const std::vector<BoundFolder>& folders);
// Removes them again, in reverse order; returns those that stay, since something is in them or
// another simulator is bound to them.
[[nodiscard]] std::vector<std::string> RemoveMountPoints(const std::vector<std::string>& made);

[[nodiscard]] Status MountTmpfs(const std::string& folder);
// No mount there is fine.
[[nodiscard]] Status Unmount(const std::string& folder);

// Moves this process into new namespaces, with loopback up and `folders` bound.
[[nodiscard]] Status EnterNamespaces(const std::vector<BoundFolder>& folders);
// Moves this process into those of `pid`, keeping its working folder.
[[nodiscard]] Status JoinNamespaces(pid_t pid);

}  // namespace switchyard::sim
