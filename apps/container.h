// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which processes are of this container: those in the caller's own cgroup, as a command run by
// kubelet's exec probe is in its container's. Two pods with the host's PIDs see each other's
// processes, and two with the same folders each other's sockets; this tells them apart. Stateless.

#include <sys/types.h>

#include <string>

#include "base/status.h"

namespace switchyard::apps {

class Container {
 public:
  // `proc`: where proc(5) is mounted. An error if the caller's own cgroup can't be read.
  [[nodiscard]] static Result<Container> Own(std::string proc = "/proc");

  // A process that has ended, or that this PID namespace does not see (0), is not.
  [[nodiscard]] bool Has(pid_t pid) const;
  // Whether a process of that name (comm in proc(5)), with that file open, is of this container.
  [[nodiscard]] bool HasNamed(const std::string& name, const std::string& open_file) const;

 private:
  Container(std::string proc, std::string cgroup);
  std::string proc_;
  std::string cgroup_;  // the whole of /proc/self/cgroup
};

}  // namespace switchyard::apps
