// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernel's device events (NETLINK_KOBJECT_UEVENT, group 1). Events are hints: the reader looks
// at sysfs again. Works in any network namespace. One reading thread.

#include "base/status.h"
#include "base/unique_fd.h"

namespace switchyard::pci {

class UeventSocket {
 public:
  [[nodiscard]] static Result<UeventSocket> Open();

  [[nodiscard]] int fd() const { return fd_.get(); }

  // Reads all that has come, without blocking. True if any of it was the kernel's (sender port 0)
  // and about the subsystems pci, vfio, vfio-dev, iommu or misc, or if events were lost (ENOBUFS):
  // scan again.
  [[nodiscard]] bool DrainAndCheck();

 private:
  explicit UeventSocket(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace switchyard::pci
