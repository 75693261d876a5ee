// SPDX-License-Identifier: Apache-2.0
#pragma once

// How commands reach a running simulator: a unix socket, one JSON request a connection, one JSON
// answer: {"result": ...} or {"error": "..."}. A request may take long (a pod waits for the agent),
// so each has a thread of its own, at most 16; more are refused. The folder's permissions guard the
// socket.

#include <functional>
#include <list>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/fd_watcher.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace switchyard::sim {

class ControlServer {
 public:
  // Called from several threads.
  using Handler = std::function<Result<nlohmann::json>(const nlohmann::json& request)>;

  [[nodiscard]] static Result<std::unique_ptr<ControlServer>> Start(const std::string& path,
                                                                    Handler handler);
  // Removes the socket and waits for the requests in progress.
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

 private:
  struct Connection {
    UniqueFd fd;
    bool done = false;
    std::thread thread;
  };

  ControlServer(std::string path, UniqueFd listener, Handler handler);
  void Accept();
  void Serve(Connection& connection);
  void Reap(bool all);

  const std::string path_;
  const UniqueFd listener_;
  const Handler handler_;
  absl::Mutex mutex_;
  std::list<Connection> connections_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<FdWatcher> watcher_;
};

// Asks the simulator at `path` and waits for its answer. kUnavailable if none listens there.
[[nodiscard]] Result<nlohmann::json> AskSimulator(const std::string& path,
                                                  const nlohmann::json& request);

}  // namespace switchyard::sim
