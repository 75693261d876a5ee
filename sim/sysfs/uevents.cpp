// SPDX-License-Identifier: Apache-2.0
#include "sim/sysfs/uevents.h"

#include <linux/netlink.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace switchyard::sim {
namespace {

// The kernel's own buffer for one event is 2048 bytes (lib/kobject_uevent.c).
constexpr size_t kMaxEvent = 1800;

std::string Text(const Uevent& event) {
  std::string text = absl::StrCat(event.action, "@", event.devpath);
  text.push_back('\0');
  const auto add = [&text](absl::string_view line) {
    absl::StrAppend(&text, line);
    text.push_back('\0');
  };
  add(absl::StrCat("ACTION=", event.action));
  add(absl::StrCat("DEVPATH=", event.devpath));
  add(absl::StrCat("SUBSYSTEM=", event.subsystem));
  for (const std::string& line : event.more) add(line);
  return text;
}

}  // namespace

Result<UeventSender> UeventSender::Open() {
  UniqueFd fd(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT));
  if (!fd.valid()) return ErrnoError(errno, "opening a netlink socket for uevents");
  UeventSender sender(std::move(fd));
  // The kernel says whether we may only when asked to broadcast something.
  RETURN_IF_ERROR(
      sender.Send({.action = "change", .devpath = "/module/vfio", .subsystem = "module"}));
  return sender;
}

Status UeventSender::Send(const Uevent& event) {
  const std::string text = Text(event);
  if (text.size() > kMaxEvent) {
    return absl::InvalidArgumentError(absl::StrCat("a uevent of ", text.size(), " bytes"));
  }
  nlmsghdr header = {};
  header.nlmsg_len = NLMSG_HDRLEN + text.size();
  header.nlmsg_type = NLMSG_MIN_TYPE;
  // With NLM_F_ACK the kernel answers in any case, so a refusal isn't taken for silence.
  header.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
  std::string message(reinterpret_cast<const char*>(&header), sizeof(header));
  message += text;

  sockaddr_nl kernel = {};
  kernel.nl_family = AF_NETLINK;
  if (sendto(fd_.get(), message.data(), message.size(), 0, reinterpret_cast<sockaddr*>(&kernel),
             sizeof(kernel)) < 0) {
    return ErrnoError(errno, "sending a uevent");
  }
  struct {
    nlmsghdr header;
    nlmsgerr error;
    char rest[2048];
  } answer = {};
  if (recv(fd_.get(), &answer, sizeof(answer), 0) < 0) {
    return ErrnoError(errno, "reading the kernel's answer to a uevent");
  }
  if (answer.header.nlmsg_type == NLMSG_ERROR && answer.error.error != 0) {
    return ErrnoError(-answer.error.error, "sending a uevent");
  }
  return OkStatus();
}

}  // namespace switchyard::sim
