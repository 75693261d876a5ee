// SPDX-License-Identifier: Apache-2.0
#pragma once

// Requests in the name of the pod's service account. The token is read for each request, and once
// more if the server did not accept it: kubelet replaces it while the agent runs. Blocking, one
// thread; Close from any.

#include <string>

#include "absl/time/time.h"
#include "base/status.h"
#include "kube/api/in_cluster.h"
#include "kube/api/transport.h"

namespace switchyard::kube::api {

class Client {
 public:
  // `transport` must outlive the client.
  Client(InCluster cluster, Transport& transport);

  // The body of an answer that says success. Else the server's own message, cut, with the code of
  // its status: kInvalidArgument (400, 422), kUnauthenticated, kPermissionDenied, kNotFound,
  // kAlreadyExists (409), kResourceExhausted (429), kUnavailable (5xx), kUnknown; or what Transport
  // and the token's file say.
  [[nodiscard]] Result<std::string> Call(const Request& request);

  // "ADDRESS: message" is how errors begin.
  [[nodiscard]] std::string address() const { return cluster_.ToString(); }
  void Close() { transport_.Close(); }

 private:
  const InCluster cluster_;
  Transport& transport_;
};

// How long the server asked to be left alone, in an error of Call; zero: it did not.
[[nodiscard]] absl::Duration RetryAfter(const Status& status);

}  // namespace switchyard::kube::api
