// SPDX-License-Identifier: Apache-2.0
#include "apps/operator_client.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cerrno>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/unique_fd.h"

namespace switchyard::apps {
namespace {

namespace http = boost::beast::http;

constexpr size_t kMaxBody = 4 * 1024 * 1024;

// One exchange on a socket that never blocks: every wait ends at the deadline.
class Exchange {
 public:
  explicit Exchange(const OperatorClient& client) : client_(client) {
    deadline_ = clock_.Monotonic() + client.timeout;
  }

  Result<std::string> Run(absl::string_view method, const std::string& target) {
    RETURN_IF_ERROR(Connect());
    RETURN_IF_ERROR(Send(absl::StrCat(method, " ", target,
                                      " HTTP/1.1\r\nHost: agent\r\nConnection: close\r\n\r\n")));
    return Receive(target);
  }

 private:
  Status Connect() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (client_.socket.size() >= sizeof(address.sun_path)) {
      return absl::InvalidArgumentError(absl::StrCat(client_.socket, ": too long for a socket"));
    }
    std::memcpy(address.sun_path, client_.socket.data(), client_.socket.size());
    fd_ = UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd_.valid()) return ErrnoError(errno, "opening a socket");
    if (::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
      return OkStatus();
    }
    if (errno == ENOENT || errno == ECONNREFUSED) {
      return absl::NotFoundError(absl::StrCat("no agent listens on ", client_.socket,
                                              ": start one with `switchyard agent`"));
    }
    if (errno == EACCES || errno == EPERM) {
      return absl::PermissionDeniedError(
          absl::StrCat(client_.socket, ": only root may ask the agent: run this as root"));
    }
    // A unix socket whose queue is full says EAGAIN at once.
    return ErrnoError(errno, client_.socket);
  }

  Status Wait(short events) {
    pollfd waiting{fd_.get(), events, 0};
    while (true) {
      const absl::Duration left = deadline_ - clock_.Monotonic();
      if (left <= absl::ZeroDuration()) break;
      const int ready = ::poll(&waiting, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);
      if (ready > 0) return OkStatus();
      if (ready < 0 && errno != EINTR) return ErrnoError(errno, client_.socket);
    }
    return absl::DeadlineExceededError(absl::StrCat("the agent did not answer within ",
                                                    absl::FormatDuration(client_.timeout), " on ",
                                                    client_.socket, ": look at its log"));
  }

  Status Send(absl::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (sent > 0) {
        text.remove_prefix(static_cast<size_t>(sent));
      } else if (errno == EAGAIN) {
        RETURN_IF_ERROR(Wait(POLLOUT));
      } else if (errno != EINTR) {
        return ErrnoError(errno, client_.socket);
      }
    }
    return OkStatus();
  }

  // More bytes of the answer behind those in pending_; false at its end.
  Result<bool> ReadMore() {
    std::array<char, 16 * 1024> buffer;
    while (true) {
      const ssize_t got = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
      if (got > 0) pending_.append(buffer.data(), static_cast<size_t>(got));
      if (got >= 0) return got > 0;
      if (errno == EAGAIN) {
        RETURN_IF_ERROR(Wait(POLLIN));
      } else if (errno != EINTR) {
        return ErrnoError(errno, client_.socket);
      }
    }
  }

  Result<std::string> Receive(const std::string& target) {
    http::response_parser<http::string_body> parser;
    parser.body_limit(kMaxBody);
    parser.eager(true);
    boost::beast::error_code error;
    while (!parser.is_done()) {
      ASSIGN_OR_RETURN(const bool more, ReadMore());
      if (more) {
        pending_.erase(0, parser.put(boost::asio::buffer(pending_), error));
      } else {
        parser.put_eof(error);
      }
      if (error && error != http::error::need_more) {
        return absl::InternalError(
            absl::StrCat("the agent's answer to ", target, " is no HTTP: ", error.message()));
      }
    }
    if (parser.get().result_int() == 503) {
      return absl::UnavailableError(absl::StripAsciiWhitespace(parser.get().body()));
    }
    if (parser.get().result_int() == 409) {
      return absl::FailedPreconditionError(absl::StripAsciiWhitespace(parser.get().body()));
    }
    if (parser.get().result_int() != 200) {
      return absl::InternalError(absl::StrCat("the agent answered ", target, " with status ",
                                              parser.get().result_int(),
                                              ": is it the same version?"));
    }
    return std::move(parser.get().body());
  }

  const OperatorClient& client_;
  RealClock clock_;
  absl::Duration deadline_;
  UniqueFd fd_;
  std::string pending_;  // read, not parsed yet
};

}  // namespace

Result<std::string> OperatorClient::Get(const std::string& target) const {
  return Exchange(*this).Run("GET", target);
}

Result<std::string> OperatorClient::Post(const std::string& target) const {
  return Exchange(*this).Run("POST", target);
}

}  // namespace switchyard::apps
