// SPDX-License-Identifier: Apache-2.0
#pragma once

// Listening stream sockets, close-on-exec and non-blocking. Plain functions; any thread.

#include <string>

#include "base/status.h"
#include "base/unique_fd.h"

namespace switchyard::sim {

struct TcpListener {
  UniqueFd fd;
  std::string address;  // "127.0.0.1:40123", with the port that was chosen
};

// `address`: "ipv4:port"; port 0 = the kernel chooses.
[[nodiscard]] Result<TcpListener> ListenTcp(const std::string& address);

// Replaces a socket file that is left over; mode 0600, as there is no authentication.
[[nodiscard]] Result<UniqueFd> ListenUnix(const std::string& path);

}  // namespace switchyard::sim
