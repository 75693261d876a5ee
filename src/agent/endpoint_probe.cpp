// SPDX-License-Identifier: Apache-2.0
#include "agent/endpoint_probe.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/numbers.h"
#include "base/unique_fd.h"

namespace switchyard::agent {
namespace {

constexpr int kTimeoutMs = 200;

bool Connects(const sockaddr* address, socklen_t length) {
  const UniqueFd fd(::socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return false;
  if (::connect(fd.get(), address, length) == 0) return true;
  if (errno != EINPROGRESS) return false;
  pollfd writable{fd.get(), POLLOUT, 0};
  int error = 0;
  socklen_t size = sizeof(error);
  return ::poll(&writable, 1, kTimeoutMs) == 1 &&
         ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

}  // namespace

bool Listens(const fabric::FabricAddress& address) {
  if (address.is_unix) {
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    if (address.text.size() >= sizeof(to.sun_path)) return false;
    std::memcpy(to.sun_path, address.text.data(), address.text.size());
    return Connects(reinterpret_cast<const sockaddr*>(&to), sizeof(to));
  }
  const std::size_t colon = address.text.rfind(':');
  int port = 0;
  sockaddr_in to{};
  to.sin_family = AF_INET;
  if (colon == std::string::npos || !absl::SimpleAtoi(address.text.substr(colon + 1), &port) ||
      ::inet_pton(AF_INET, address.text.substr(0, colon).c_str(), &to.sin_addr) != 1) {
    return false;
  }
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  return Connects(reinterpret_cast<const sockaddr*>(&to), sizeof(to));
}

}  // namespace switchyard::agent
