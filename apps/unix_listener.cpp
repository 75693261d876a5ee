// SPDX-License-Identifier: Apache-2.0
#include "apps/unix_listener.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "base/unique_fd.h"

namespace switchyard::apps {

namespace {

// False with errno; then the descriptor is of no use.
bool Connect(const UniqueFd& fd, const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  errno = ENAMETOOLONG;
  if (path.size() >= sizeof(address.sun_path)) return false;
  std::memcpy(address.sun_path, path.data(), path.size());
  return ::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
}

UniqueFd MakeSocket() {
  return UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

}  // namespace

Listener ProbeSocket(const std::string& path) {
  const UniqueFd fd = MakeSocket();
  if (Connect(fd, path)) return Listener::kListens;
  if (errno == EAGAIN) return Listener::kListens;  // its queue is full
  return errno == EACCES || errno == EPERM ? Listener::kNotAllowed : Listener::kNone;
}

pid_t ListenerPid(const std::string& path) {
  const UniqueFd fd = MakeSocket();
  if (!Connect(fd, path)) return 0;
  ucred listener{};
  socklen_t size = sizeof(listener);
  return ::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &listener, &size) == 0 ? listener.pid : 0;
}

}  // namespace switchyard::apps
