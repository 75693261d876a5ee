// SPDX-License-Identifier: Apache-2.0
#pragma once

// The wire (sim/fm/wire.h) on any number of listening sockets: one thread, nothing in it blocks, so
// a call that is held or delayed keeps no other waiting. The destructor breaks every connection.

#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/unique_fd.h"
#include "sim/fm/wire.h"

namespace switchyard::sim {

class WireServer {
 public:
  struct Answer {
    bool hold = false;  // never answer
    // Of a held call: done once its caller has gone, but not when this server ends. Called on the
    // server's thread.
    std::function<void()> when_gone = {};
    absl::Duration latency;
    std::string bytes;
    // Instead of bytes: makes them when the latency is over, also if the caller has gone, but not
    // when this server ends. Called on the server's thread.
    std::function<std::string()> work = {};
  };
  // `internal`: the request came to FM's internal endpoint. Called on the server's thread.
  using Handler = std::function<Answer(const WireRequest& request, bool internal)>;
  // A held call's connection has closed.
  using Released = std::function<void()>;

  struct Listener {
    UniqueFd fd;
    bool internal = false;
  };

  WireServer(std::vector<Listener> listeners, Handler handler, Released released);
  ~WireServer();
  WireServer(const WireServer&) = delete;
  WireServer& operator=(const WireServer&) = delete;

 private:
  struct Connection {
    UniqueFd fd;
    bool internal = false;
    std::string request;  // so far
    bool held = false;
    std::function<void()> when_gone;
    std::function<std::string()> work;  // not done yet; then it may have no fd any more
    std::string answer;                 // what is left to send
    absl::Duration due;                 // RealClock::Monotonic
  };

  void Run();
  void Accept(const Listener& listener);
  // What poll should wait for, and for how long at most.
  [[nodiscard]] short Events(const Connection& connection, absl::Duration now) const;
  [[nodiscard]] int TimeoutMs(absl::Duration now) const;
  void WorkIfDue(Connection& connection);
  // False once the connection is at its end.
  bool Serve(Connection& connection, short events);
  bool Read(Connection& connection);
  bool Write(Connection& connection);

  const std::vector<Listener> listeners_;
  const Handler handler_;
  const Released released_;
  RealClock clock_;
  UniqueFd stop_;  // eventfd
  std::vector<Connection> connections_;
  std::thread thread_;
};

}  // namespace switchyard::sim
