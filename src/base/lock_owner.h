// SPDX-License-Identifier: Apache-2.0
#pragma once

// Who holds a lock file, in the holder's own words: it writes them when it gets the lock, because a
// process in another pod or container can't be looked up by its PID from here. The first line is
// the PID. What a former holder wrote stays until the next one writes: only flock(2) says whether
// anybody holds the lock. Any thread.

#include <string>

#include "absl/strings/string_view.h"
#include "base/status.h"

namespace switchyard {

struct LockOwner {
  int pid = 0;          // in the owner's PID namespace
  std::string command;  // its arguments, with spaces between them; the rest may be empty
  std::string host;     // its host name: in a pod, unless it has the host's network, the pod's name
  std::string cgroup;   // where the kernel shows it; under a private cgroup namespace it is "/"
  std::string since;    // RFC 3339, UTC

  // "process 7 (switchyard agent) on host node-a, cgroup /kubepods/pod1/2, since 2026-..."
  [[nodiscard]] std::string Describe() const;
};

// What this process writes: itself, from now on.
[[nodiscard]] LockOwner ThisProcess();
[[nodiscard]] std::string LockOwnerText(const LockOwner& owner);

// kNotFound or what errno says; kDataLoss if the first line is no PID.
[[nodiscard]] Result<LockOwner> ReadLockOwner(const std::string& path);

}  // namespace switchyard
