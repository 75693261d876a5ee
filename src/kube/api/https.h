// SPDX-License-Identifier: Apache-2.0
#pragma once

// HTTP/1.1 over TLS to one server, with a connection a request: the CA's file is read each time, so
// that a new one counts at once, and between requests nothing is held open. The server's
// certificate must be of that CA and for that address or name. Boost.Beast and OpenSSL stay behind
// this header; a process that makes no Https initialises neither.

#include <memory>

#include "kube/api/in_cluster.h"
#include "kube/api/transport.h"

namespace switchyard::kube::api {

struct HttpsOptions {
  absl::Duration timeout = absl::Seconds(10);  // of one request, name look-up included
  size_t max_answer = size_t{1} << 20;         // bytes of its body
};

[[nodiscard]] std::unique_ptr<Transport> MakeHttps(const InCluster& cluster,
                                                   const HttpsOptions& options = {});

}  // namespace switchyard::kube::api
