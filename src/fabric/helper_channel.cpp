// SPDX-License-Identifier: Apache-2.0
#include "fabric/helper_channel.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>

namespace switchyard::fabric {
namespace {

Status Closed() { return absl::UnavailableError("the channel to the fabric helper is closed"); }

// Until `fd` is ready for `events`, or has hung up.
Status WaitFor(int fd, short events, absl::Duration deadline) {
  while (true) {
    int timeout_ms = -1;
    if (deadline != absl::InfiniteDuration()) {
      const absl::Duration left = deadline - RealClock().Monotonic();
      if (left <= absl::ZeroDuration()) return absl::DeadlineExceededError("no answer in time");
      timeout_ms =
          static_cast<int>(std::min<std::int64_t>(absl::ToInt64Milliseconds(left) + 1, INT_MAX));
    }
    pollfd poll_fd{fd, events, 0};
    const int ready = ::poll(&poll_fd, 1, timeout_ms);
    if (ready > 0) return OkStatus();
    if (ready < 0 && errno != EINTR)
      return absl::InternalError(ErrnoError(errno, "poll").message());
  }
}

// `move` is one non-blocking send or recv of what is left; all of `size` or an error.
template <typename Move>
Status TransferAll(int fd, short events, std::size_t size, absl::Duration deadline, Move move) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t moved = move(done, size - done);
    if (moved > 0) {
      done += static_cast<std::size_t>(moved);
    } else if (moved == 0 || errno == EPIPE || errno == ECONNRESET) {
      return Closed();
    } else if (errno == EAGAIN) {
      RETURN_IF_ERROR(WaitFor(fd, events, deadline));
    } else if (errno != EINTR) {
      return absl::InternalError(ErrnoError(errno, "fabric helper's channel").message());
    }
  }
  return OkStatus();
}

Status Send(int fd, const char* data, std::size_t size, absl::Duration deadline) {
  return TransferAll(fd, POLLOUT, size, deadline, [&](std::size_t done, std::size_t left) {
    return ::send(fd, data + done, left, MSG_NOSIGNAL | MSG_DONTWAIT);
  });
}

Status Receive(int fd, char* data, std::size_t size, absl::Duration deadline) {
  return TransferAll(fd, POLLIN, size, deadline, [&](std::size_t done, std::size_t left) {
    return ::recv(fd, data + done, left, MSG_DONTWAIT);
  });
}

}  // namespace

Status SendMessage(int fd, absl::string_view text, absl::Duration deadline) {
  if (text.size() > kMaxMessageBytes) {
    return absl::DataLossError("a message to or from the fabric helper is over 4 MiB");
  }
  const auto length = static_cast<std::uint32_t>(text.size());
  // In one piece: the other end is woken once, and finds all of it.
  std::string message;
  message.reserve(sizeof(length) + text.size());
  message.append(reinterpret_cast<const char*>(&length), sizeof(length));
  message.append(text.data(), text.size());
  return Send(fd, message.data(), message.size(), deadline);
}

Result<std::string> ReceiveMessage(int fd, absl::Duration deadline) {
  std::uint32_t length = 0;
  RETURN_IF_ERROR(Receive(fd, reinterpret_cast<char*>(&length), sizeof(length), deadline));
  if (length > kMaxMessageBytes) {
    return absl::DataLossError("a message to or from the fabric helper is over 4 MiB");
  }
  std::string text(length, '\0');
  RETURN_IF_ERROR(Receive(fd, text.data(), text.size(), deadline));
  return text;
}

bool IsHungUp(int fd) {
  pollfd poll_fd{fd, POLLRDHUP, 0};
  return ::poll(&poll_fd, 1, 0) > 0 && poll_fd.revents != 0;
}

}  // namespace switchyard::fabric
