// SPDX-License-Identifier: Apache-2.0
#include "sim/fm/listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace switchyard::sim {
namespace {

constexpr int kBacklog = 16;

Result<UniqueFd> NewSocket(int family) {
  UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return ErrnoError(errno, "socket");
  return fd;
}

Status BindAndListen(int fd, const sockaddr* address, socklen_t size, const std::string& name) {
  if (::bind(fd, address, size) != 0) return ErrnoError(errno, absl::StrCat("binding ", name));
  if (::listen(fd, kBacklog) != 0) return ErrnoError(errno, absl::StrCat("listening on ", name));
  return OkStatus();
}

Result<sockaddr_in> ParseInet(const std::string& address) {
  const auto colon = address.rfind(':');
  std::uint32_t port = 0;
  sockaddr_in inet{};
  inet.sin_family = AF_INET;
  if (colon == std::string::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port) ||
      port > 65535 || ::inet_pton(AF_INET, address.substr(0, colon).c_str(), &inet.sin_addr) != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("Fabric Manager's TCP address \"", address, "\" is not ipv4:port"));
  }
  inet.sin_port = htons(static_cast<std::uint16_t>(port));
  return inet;
}

}  // namespace

Result<TcpListener> ListenTcp(const std::string& address) {
  ASSIGN_OR_RETURN(sockaddr_in inet, ParseInet(address));
  ASSIGN_OR_RETURN(UniqueFd fd, NewSocket(AF_INET));
  const int on = 1;  // a restart finds its port again, whatever old connections are closing
  (void)::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  RETURN_IF_ERROR(
      BindAndListen(fd.get(), reinterpret_cast<sockaddr*>(&inet), sizeof(inet), address));
  socklen_t size = sizeof(inet);
  if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&inet), &size) != 0) {
    return ErrnoError(errno, "getsockname");
  }
  const std::string host = address.substr(0, address.rfind(':'));
  return TcpListener{std::move(fd), absl::StrCat(host, ":", ntohs(inet.sin_port))};
}

Result<UniqueFd> ListenUnix(const std::string& path) {
  sockaddr_un local{};
  local.sun_family = AF_UNIX;
  if (path.size() >= sizeof(local.sun_path)) {
    return absl::InvalidArgumentError(
        absl::StrCat("socket ", path, ": a socket's path has at most 107 bytes"));
  }
  std::memcpy(local.sun_path, path.c_str(), path.size() + 1);
  ASSIGN_OR_RETURN(UniqueFd fd, NewSocket(AF_UNIX));
  (void)::unlink(path.c_str());
  RETURN_IF_ERROR(
      BindAndListen(fd.get(), reinterpret_cast<sockaddr*>(&local), sizeof(local), path));
  if (::chmod(path.c_str(), 0600) != 0) return ErrnoError(errno, absl::StrCat("chmod ", path));
  return fd;
}

}  // namespace switchyard::sim
