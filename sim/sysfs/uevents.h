// SPDX-License-Identifier: Apache-2.0
#pragma once

// Device events as the kernel sends them: root in the network namespace's owner may hand the kernel
// a message that it then broadcasts to every listener of NETLINK_KOBJECT_UEVENT as its own (sender
// port 0, group 1), with a SEQNUM added. Never open one in a namespace where somebody else listens:
// the machine's udev would act on devices that are not there. One thread at a time.

#include <string>
#include <vector>

#include "base/status.h"
#include "base/unique_fd.h"

namespace switchyard::sim {

struct Uevent {
  std::string action;                  // "add", "remove", "bind", "unbind"
  std::string devpath;                 // "/devices/pci0000:0f/0000:0f:00.0"
  std::string subsystem;               // "pci", "vfio", "vfio-dev"
  std::vector<std::string> more = {};  // "KEY=value"
};

class UeventSender {
 public:
  // In the calling thread's network namespace. kPermissionDenied without CAP_SYS_ADMIN there.
  [[nodiscard]] static Result<UeventSender> Open();

  [[nodiscard]] Status Send(const Uevent& event);

 private:
  explicit UeventSender(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace switchyard::sim
