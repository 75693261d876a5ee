// SPDX-License-Identifier: Apache-2.0
#include "sim/fm/server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

namespace switchyard::sim {
namespace {

constexpr std::size_t kMaxConnections = 64;  // more are closed at once

bool WouldBlock() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

WireServer::WireServer(std::vector<Listener> listeners, Handler handler, Released released)
    : listeners_(std::move(listeners)),
      handler_(std::move(handler)),
      released_(std::move(released)),
      stop_(::eventfd(0, EFD_CLOEXEC)),
      thread_([this] { Run(); }) {}

WireServer::~WireServer() {
  (void)::eventfd_write(stop_.get(), 1);
  thread_.join();
  for (const Connection& connection : connections_) {
    if (connection.held) released_();
  }
}

void WireServer::Run() {
  while (true) {
    const absl::Duration now = clock_.Monotonic();
    std::vector<pollfd> fds = {{stop_.get(), POLLIN, 0}};
    for (const Listener& listener : listeners_) fds.push_back({listener.fd.get(), POLLIN, 0});
    for (const Connection& c : connections_) fds.push_back({c.fd.get(), Events(c, now), 0});
    if (::poll(fds.data(), fds.size(), TimeoutMs(now)) < 0) continue;  // EINTR
    if (fds[0].revents != 0) return;

    const std::size_t first_connection = 1 + listeners_.size();
    std::vector<Connection> open;
    for (std::size_t i = 0; i < connections_.size(); ++i) {
      Connection& connection = connections_[i];
      WorkIfDue(connection);
      if (Serve(connection, fds[first_connection + i].revents)) {
        open.push_back(std::move(connection));
      } else if (connection.held) {
        if (connection.when_gone) connection.when_gone();
        released_();
      }
    }
    connections_ = std::move(open);
    for (std::size_t i = 0; i < listeners_.size(); ++i) {
      if (fds[1 + i].revents != 0) Accept(listeners_[i]);
    }
  }
}

void WireServer::Accept(const Listener& listener) {
  UniqueFd fd(::accept4(listener.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd.valid() || connections_.size() >= kMaxConnections) return;
  Connection connection;
  connection.fd = std::move(fd);
  connection.internal = listener.internal;
  connections_.push_back(std::move(connection));
}

short WireServer::Events(const Connection& connection, absl::Duration now) const {
  if (connection.held || connection.work) return POLLRDHUP;
  if (connection.answer.empty()) return POLLIN;
  return connection.due <= now ? POLLOUT : POLLRDHUP;
}

int WireServer::TimeoutMs(absl::Duration now) const {
  absl::Duration wait = absl::InfiniteDuration();
  for (const Connection& connection : connections_) {
    if (!connection.answer.empty() || connection.work) wait = std::min(wait, connection.due - now);
  }
  if (wait == absl::InfiniteDuration()) return -1;
  const std::int64_t ms = absl::ToInt64Milliseconds(absl::Ceil(wait, absl::Milliseconds(1)));
  return static_cast<int>(std::clamp<std::int64_t>(ms, 0, INT_MAX));
}

void WireServer::WorkIfDue(Connection& connection) {
  if (!connection.work || clock_.Monotonic() < connection.due) return;
  connection.answer = std::exchange(connection.work, nullptr)();
}

bool WireServer::Serve(Connection& connection, short events) {
  if (connection.work) {
    if (events != 0) connection.fd.reset();
    return true;
  }
  if (!connection.fd.valid()) return false;
  if ((events & POLLIN) != 0) return Read(connection);
  if ((events & POLLOUT) != 0) return Write(connection);
  return events == 0;  // otherwise hung up
}

bool WireServer::Read(Connection& connection) {
  char buffer[sizeof(WireRequest)];
  const std::size_t missing = sizeof(WireRequest) - connection.request.size();
  const ssize_t got = ::recv(connection.fd.get(), buffer, missing, 0);
  if (got == 0 || (got < 0 && !WouldBlock())) return false;
  if (got < 0) return true;
  connection.request.append(buffer, static_cast<std::size_t>(got));
  if (connection.request.size() < sizeof(WireRequest)) return true;

  WireRequest request;
  std::memcpy(&request, connection.request.data(), sizeof(request));
  connection.request.clear();
  if (request.magic != kWireMagic) return false;
  Answer answer = handler_(request, connection.internal);
  connection.held = answer.hold;
  connection.when_gone = std::move(answer.when_gone);
  connection.answer = std::move(answer.bytes);
  connection.work = std::move(answer.work);
  connection.due = clock_.Monotonic() + answer.latency;
  return true;
}

bool WireServer::Write(Connection& connection) {
  const ssize_t sent =
      ::send(connection.fd.get(), connection.answer.data(), connection.answer.size(), MSG_NOSIGNAL);
  if (sent < 0) return WouldBlock();
  connection.answer.erase(0, static_cast<std::size_t>(sent));
  return true;
}

}  // namespace switchyard::sim
