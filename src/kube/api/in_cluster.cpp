// SPDX-License-Identifier: Apache-2.0
#include "kube/api/in_cluster.h"

#include <unistd.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"

namespace switchyard::kube::api {
namespace {

constexpr size_t kMaxTokenBytes = size_t{64} * 1024;
constexpr size_t kMaxHostBytes = 253;

bool IsHost(absl::string_view host) {
  return host.size() <= kMaxHostBytes && std::all_of(host.begin(), host.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) || c == '.' || c == '-' || c == ':';
         });
}

}  // namespace

std::string InCluster::ToString() const {
  const bool v6 = absl::StrContains(host, ":");
  return absl::StrCat("https://", v6 ? "[" : "", host, v6 ? "]" : "", ":", port);
}

Result<InCluster> FindInCluster(const char* host, const char* port, const std::string& folder) {
  if (host == nullptr || *host == '\0' || port == nullptr || *port == '\0')
    return absl::NotFoundError("KUBERNETES_SERVICE_HOST is not set: this is no pod");
  InCluster cluster{host, 0, folder};
  if (::access(cluster.token_file().c_str(), F_OK) != 0)
    return absl::NotFoundError(absl::StrCat(cluster.token_file(),
                                            " is not there: this pod has no "
                                            "service account's token"));
  if (!IsHost(host))
    return absl::InvalidArgumentError("KUBERNETES_SERVICE_HOST is neither an address nor a name");
  unsigned number = 0;
  if (!absl::SimpleAtoi(port, &number) || number == 0 || number > 65535)
    return absl::InvalidArgumentError("KUBERNETES_SERVICE_PORT is no number from 1 to 65535");
  cluster.port = static_cast<std::uint16_t>(number);
  return cluster;
}

Result<std::string> ReadToken(const InCluster& cluster) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(cluster.token_file(), kMaxTokenBytes));
  const absl::string_view token = absl::StripAsciiWhitespace(text);
  // It becomes a header line.
  const bool fits = !token.empty() && std::all_of(token.begin(), token.end(), absl::ascii_isgraph);
  if (!fits) return absl::InvalidArgumentError(absl::StrCat(cluster.token_file(), ": no token"));
  return std::string(token);
}

}  // namespace switchyard::kube::api
