// SPDX-License-Identifier: Apache-2.0
#pragma once

// Who has a VFIO device open, seen from outside. A device is held by an open file with the device
// number of its group or cdev node in /proc/PID/fd, by an anonymous vfio device file (the kernel
// does not say whose: it may be any device), or possibly by a process whose files can't be read.
// Needs the host's PIDs. Reads /proc below the host root; any thread.

#include <sys/types.h>

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/host_root.h"
#include "base/pci_address.h"
#include "base/status.h"

namespace switchyard::pci {

struct Holder {
  pid_t pid = 0;
  std::string command;  // /proc/PID/comm
  std::string cgroup;   // its path; empty if unknown. src/kube makes a pod of it
  std::string file;     // "/dev/vfio/12", "anon_inode:[vfio-device]"; empty: files unreadable
};

// The nodes of one device's group, by their device numbers (0: has none).
struct DeviceNodes {
  PciAddress address;
  dev_t group = 0;
  dev_t cdev = 0;
};

struct Holders {
  std::map<PciAddress, std::vector<Holder>> of;  // attributed by device number
  std::vector<Holder> anyones;                   // anonymous vfio files: any device may be theirs
  std::vector<Holder> unreadable;                // processes whose files nobody may read

  // True if `address` may be held: the question before every release.
  [[nodiscard]] bool MayHold(const PciAddress& address) const;
};

// One look at all processes. kFailedPrecondition if these are not the host's PIDs (the agent runs
// in a PID namespace of its own: the answer would be "nobody").
[[nodiscard]] Result<Holders> FindHolders(const HostRoot& root,
                                          std::span<const DeviceNodes> devices);

// Opens and closes the group node (never a device: that would reset it): true = EBUSY, somebody has
// the group. Under the device's lock only: while it is open here, nobody else can open it.
[[nodiscard]] Result<bool> GroupIsBusy(const HostRoot& root, int iommu_group);

}  // namespace switchyard::pci
