// SPDX-License-Identifier: Apache-2.0
#pragma once

// Calls to kubelet's own sockets: a connection a call (its sockets are new after each restart), no
// proxy, no retry of gRPC's own. Any thread.

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include <chrono>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/status.h"

namespace switchyard::kube {

// Connects with the first call.
[[nodiscard]] std::shared_ptr<grpc::Channel> DialUnix(const std::string& path,
                                                      int max_receive_bytes);

// gRPC's deadlines are the machine's time, whatever clock the caller has.
void SetTimeout(grpc::ClientContext& context, absl::Duration timeout);

// The two have the same codes.
[[nodiscard]] Status FromGrpc(const grpc::Status& status);
[[nodiscard]] grpc::Status ToGrpc(const Status& status);

}  // namespace switchyard::kube
