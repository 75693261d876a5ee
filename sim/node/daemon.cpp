// SPDX-License-Identifier: Apache-2.0
#include "sim/node/daemon.h"

#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "base/file_lock.h"
#include "base/files.h"
#include "sim/node/control_socket.h"
#include "sim/node/namespaces.h"
#include "sim/node/requests.h"

namespace switchyard::sim {
namespace {

sigset_t BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

Status EnterIfAsked(const NodePaths& paths, const Record& record) {
  return record.namespaces ? EnterNamespaces(BoundFolders(paths)) : OkStatus();
}

}  // namespace

Status RunNode(SimNodeOptions options, const std::function<void(const SimNode&)>& ready) {
  const sigset_t signals = BlockSignals();  // before any thread, so that all inherit it
  const NodePaths paths(options.dir);
  RETURN_IF_ERROR(MakeFolders(paths.dir, 0700));
  ASSIGN_OR_RETURN(const FileLock lock, FileLock::TryAcquire(paths.pid()));
  ASSIGN_OR_RETURN(const std::unique_ptr<SimNode> node, SimNode::Create(std::move(options)));
  ASSIGN_OR_RETURN(
      std::unique_ptr<ControlServer> server,
      ControlServer::Start(paths.control_socket(), [&node](const nlohmann::json& request) {
        return HandleRequest(*node, request);
      }));
  ready(*node);
  int signal = 0;
  sigwait(&signals, &signal);
  // Requests that wait for the agent end with kubelet's connections.
  if (node->has_kubelet()) node->kubelet().Stop();
  server.reset();
  return OkStatus();
}

Status RunDaemon(const NodePaths& paths, int ready_fd) {
  const auto tell = [ready_fd](const std::string& text) {
    // `up` may be gone; then nobody wants to know.
    (void)!write(ready_fd, text.data(), text.size());
    close(ready_fd);
  };
  const auto run = [&]() -> Status {
    ASSIGN_OR_RETURN(const Record record, ReadRecord(paths));
    RETURN_IF_ERROR(EnterIfAsked(paths, record));
    SimNodeOptions options;
    options.dir = paths.dir;
    options.board = record.board;
    options.seed = record.seed;
    options.driver = record.driver;
    options.iommufd = record.iommufd;
    if (record.namespaces) {
      options.fm_tcp = "127.0.0.1:6666";
      options.uevents = true;
    }
    return RunNode(std::move(options), [&tell](const SimNode&) { tell("ready"); });
  };
  const Status status = run();
  if (!status.ok()) tell(std::string(status.message()));
  return status;
}

}  // namespace switchyard::sim
