// SPDX-License-Identifier: Apache-2.0
#include "pci/uevents.h"

#include <linux/netlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace switchyard::pci {
namespace {

constexpr std::uint32_t kKernelGroup = 1;  // group 2 is udev's, after its rules
// A device coming or going makes a few events each. With more than this waiting, rescanning is
// right whatever they are; the descriptor stays readable.
constexpr int kMaxEvents = 1024;
constexpr std::array<absl::string_view, 5> kSubsystems = {"pci", "vfio", "vfio-dev", "iommu",
                                                          "misc"};

// "add@/devices/...", then KEY=value, each ended by a NUL.
bool IsAboutOurs(absl::string_view event) {
  for (absl::string_view field : absl::StrSplit(event, '\0')) {
    if (!absl::ConsumePrefix(&field, "SUBSYSTEM=")) continue;
    return std::find(kSubsystems.begin(), kSubsystems.end(), field) != kSubsystems.end();
  }
  return false;
}

}  // namespace

Result<UeventSocket> UeventSocket::Open() {
  UniqueFd fd(
      ::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT));
  if (!fd.valid()) return ErrnoError(errno, "opening a socket for the kernel's device events");
  sockaddr_nl address = {};
  address.nl_family = AF_NETLINK;
  address.nl_groups = kKernelGroup;
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    return ErrnoError(errno, "listening to the kernel's device events");
  return UeventSocket(std::move(fd));
}

bool UeventSocket::DrainAndCheck() {
  bool ours = false;
  for (int i = 0; i < kMaxEvents; ++i) {
    char buffer[8192];  // the kernel's events have at most 2 KiB (UEVENT_BUFFER_SIZE)
    sockaddr_nl sender = {};
    socklen_t size = sizeof(sender);
    const ssize_t got = ::recvfrom(fd_.get(), buffer, sizeof(buffer), 0,
                                   reinterpret_cast<sockaddr*>(&sender), &size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return ours;
    if (got < 0) {
      ours = true;  // ENOBUFS: events were lost. Any other error: don't trust the silence either.
      if (errno != ENOBUFS) return true;
    } else if (sender.nl_pid == 0) {  // the kernel; a process of root's could send, too
      ours = ours || IsAboutOurs({buffer, static_cast<size_t>(got)});
    }
  }
  return true;
}

}  // namespace switchyard::pci
