// SPDX-License-Identifier: Apache-2.0
#pragma once

// A gRPC server on a unix socket: how both of kubelet's services start and stop. For .cpp files
// only: it brings gRPC's headers.

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "base/status.h"

namespace switchyard::sim {

// Serves the builder's services on `path`, whose folder exists. A path over the kernel's 107 bytes
// or one that can't be bound is an error that says so.
[[nodiscard]] Result<std::unique_ptr<grpc::Server>> StartServer(grpc::ServerBuilder& builder,
                                                                const std::string& path);

// Ends calls in flight, waits for their handlers and removes the socket. Null is fine.
void StopServer(std::unique_ptr<grpc::Server> server);

}  // namespace switchyard::sim
