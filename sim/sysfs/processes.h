// SPDX-License-Identifier: Apache-2.0
#pragma once

// Processes of the simulated node, as files below <root>/proc: process 1, and those that have
// devices open. They are planted, not run: whoever looks there for holders sees no difference, and
// it needs no root. A device node is never busy for it. One thread at a time.

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "base/pci_address.h"
#include "base/status.h"
#include "sim/sysfs/folder_edit.h"

namespace switchyard::sim {

struct HolderSpec {
  std::string command = "qemu-system-x86";  // at most 15 bytes, as the kernel keeps
  std::string pod_uid = {};                 // empty: of no pod
};

class Processes {
 public:
  // <root>/proc with process 1, which is in the first PID namespace: these are the host's.
  [[nodiscard]] static Result<Processes> Create(const std::string& root);

  // A process that has the device open as a virtual machine's monitor has: the nodes named
  // ("dev/vfio/12"), and an anonymous device file of which fdinfo says whose it is.
  [[nodiscard]] Result<pid_t> Hold(const PciAddress& address, const std::vector<std::string>& nodes,
                                   const HolderSpec& spec);
  // Ends all that have it open; how many. All of them: as a reboot does.
  [[nodiscard]] Result<int> Release(const PciAddress& address);
  [[nodiscard]] Status ReleaseAll();

  [[nodiscard]] const std::map<pid_t, PciAddress>& holders() const { return holders_; }

 private:
  explicit Processes(const std::string& root) : edit_(root) {}

  FolderEdit edit_;
  pid_t next_pid_ = 1000;
  std::map<pid_t, PciAddress> holders_;
};

}  // namespace switchyard::sim
