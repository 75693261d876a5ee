// SPDX-License-Identifier: Apache-2.0
#pragma once

// Who has a VFIO device open, seen from outside: the processes below <root>/proc, by the device
// number of what each open file is (never by its name: that is of another mount namespace).
// Reads only; any thread.
//
// What no look at processes sees: a file on its way through a socket, held by KVM alone, mapped and
// closed, or in a thread's own table. With each of them the group is busy, so before a release
// both are asked, this and GroupIsBusy. Neither sees such a file if it is a cdev that was never
// bound to an iommufd: it gives no access to the device.

#include <sys/types.h>

#include <map>
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
  std::string cgroup;   // its path, the deepest of several; empty if unknown. src/kube reads a pod
                        // out of it
  std::string file;     // "/dev/vfio/12", "anon_inode:[vfio-device]", as the kernel names it there
  std::string problem;  // why its files can't be told; empty: they can

  bool operator==(const Holder&) const = default;
};

// The character devices by which a device is opened: its group's, and the cdev of each member of
// the group. Somebody may still hold one that is gone from sysfs (the kernel removes a node before
// it waits for who has it open): add the numbers of the last grant to what ReadDeviceNodes gives.
struct DeviceNodes {
  PciAddress address;
  std::vector<dev_t> numbers;
};

struct Holders {
  std::map<PciAddress, std::vector<Holder>> of;  // by device; nobody: no entry
  // Vfio files of which nobody can say whose they are: any device may be theirs. An anonymous
  // device file is its device's where the kernel says so (fdinfo, from Linux 6.18 on), else of the
  // devices whose nodes the same process has open.
  std::vector<Holder> anyones;
  // Processes whose files may not be read, or that are exiting and close their files right now.
  std::vector<Holder> unreadable;

  // True if `address` may be held: the question before every release, with GroupIsBusy.
  [[nodiscard]] bool MayHold(const PciAddress& address) const;
};

// From sysfs, which is the host's even where dev/ is a container's own. kNotFound: no such device.
[[nodiscard]] Result<DeviceNodes> ReadDeviceNodes(const HostRoot& root, const PciAddress& address);

// One look at all processes but this one. Processes that end meanwhile are left out.
// kFailedPrecondition if they are not the host's (the answer would be "nobody"), and
// kPermissionDenied if that can't be told: this process (<root>/proc/self/ns/pid), or process 1
// there, must be in the first PID namespace.
[[nodiscard]] Result<Holders> FindHolders(const HostRoot& root,
                                          std::span<const DeviceNodes> devices);

// Opens and closes the group node (never a device: that would reset it): true = EBUSY, somebody has
// the group, or a device of it by legacy file or bound cdev. Under the device's lock only: while it
// is open here, nobody else can open it. kNotFound: the group has no node; kFailedPrecondition: the
// node is missing in dev/, or is not the group's (an old one, in a container's own dev/);
// kPermissionDenied: a container that is not privileged.
[[nodiscard]] Result<bool> GroupIsBusy(const HostRoot& root, int iommu_group);
// The same of the group that a device is in now. False if it is gone, in no group, or its group has
// no node.
[[nodiscard]] Result<bool> DeviceIsBusy(const HostRoot& root, const PciAddress& address);

}  // namespace switchyard::pci
