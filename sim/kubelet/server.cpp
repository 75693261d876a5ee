// SPDX-License-Identifier: Apache-2.0
#include "sim/kubelet/server.h"

#include <sys/un.h>

#include "absl/strings/str_cat.h"

namespace switchyard::sim {

Result<std::unique_ptr<grpc::Server>> StartServer(grpc::ServerBuilder& builder,
                                                  const std::string& path) {
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": a unix socket's path has at most ", sizeof(sockaddr_un::sun_path) - 1,
        " bytes, this one has ", path.size(), "; choose a folder with a shorter name"));
  }
  builder.AddListeningPort(absl::StrCat("unix:", path), grpc::InsecureServerCredentials());
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) {
    return absl::UnavailableError(
        absl::StrCat(path, ": can't be listened on; see that its folder exists and is writable"));
  }
  return server;
}

void StopServer(std::unique_ptr<grpc::Server> server) {
  if (server == nullptr) return;
  server->Shutdown(std::chrono::system_clock::now());
  server->Wait();
}

}  // namespace switchyard::sim
