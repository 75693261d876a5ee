// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a pod is told of its API server: the address in two variables, and the service account's
// token and CA in a folder. kubelet replaces the token's file while it is valid and the CA's when
// it changes, so both are read when they are needed, and nothing of them is kept. Any thread.

#include <cstdint>
#include <string>

#include "base/status.h"

namespace switchyard::kube::api {

struct InCluster {
  std::string host;  // an IP address or a name
  std::uint16_t port = 443;
  std::string folder;

  [[nodiscard]] std::string ToString() const;  // "https://10.96.0.1:443", "https://[fd00::1]:443"
  [[nodiscard]] std::string ca_file() const { return folder + "/ca.crt"; }
  [[nodiscard]] std::string token_file() const { return folder + "/token"; }
};

// `host` and `port`: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT; null: not set. kNotFound
// says why there is no API server for this process, which is no error: it runs outside a cluster,
// or its pod gets no token. kInvalidArgument: told, but wrongly.
[[nodiscard]] Result<InCluster> FindInCluster(const char* host, const char* port,
                                              const std::string& folder);

// Without the line end. Errors name the file.
[[nodiscard]] Result<std::string> ReadToken(const InCluster& cluster);

}  // namespace switchyard::kube::api
