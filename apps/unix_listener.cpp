// SPDX-License-Identifier: Apache-2.0
#include "apps/unix_listener.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "base/unique_fd.h"

namespace switchyard::apps {

Listener ProbeSocket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return Listener::kNone;
  std::memcpy(address.sun_path, path.data(), path.size());
  const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
    return Listener::kListens;
  }
  if (errno == EAGAIN) return Listener::kListens;  // its queue is full
  return errno == EACCES || errno == EPERM ? Listener::kNotAllowed : Listener::kNone;
}

}  // namespace switchyard::apps
