// SPDX-License-Identifier: Apache-2.0
#include "fabric/fabric_reader.h"

#include <arpa/inet.h>
#include <sys/un.h>

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace switchyard::fabric {
namespace {

constexpr absl::string_view kUnixPrefix = "unix:";

bool IsIpv4(absl::string_view text) {
  in_addr ignored;
  return ::inet_pton(AF_INET, std::string(text).c_str(), &ignored) == 1;
}

bool IsPort(absl::string_view text) {
  std::uint32_t port = 0;
  return std::all_of(text.begin(), text.end(), [](char c) { return absl::ascii_isdigit(c); }) &&
         absl::SimpleAtoi(text, &port) && port >= 1 && port <= 65535;
}

Status BadAddress(absl::string_view text, absl::string_view rule) {
  return absl::InvalidArgumentError(
      absl::StrCat("Fabric Manager's address \"", text.substr(0, 256), "\": ", rule,
                   "; write it as 127.0.0.1:6666 or unix:/run/nvidia-fabricmanager/socket"));
}

}  // namespace

Result<FabricAddress> FabricAddress::Parse(absl::string_view text) {
  absl::string_view path = text;
  if (absl::ConsumePrefix(&path, kUnixPrefix)) {
    if (path.empty() || path.front() != '/') return BadAddress(text, "the path must begin with /");
    if (path.size() >= sizeof(sockaddr_un::sun_path)) {
      return BadAddress(text, "a socket's path has at most 107 bytes");
    }
    if (path.find('\0') != path.npos) return BadAddress(text, "the path contains a zero byte");
    return FabricAddress{std::string(path), true};
  }
  const auto colon = text.rfind(':');
  if (colon == text.npos) return BadAddress(text, "the port is missing");
  if (!IsPort(text.substr(colon + 1))) return BadAddress(text, "the port must be 1 to 65535");
  if (!IsIpv4(text.substr(0, colon))) {
    return BadAddress(text, "libnvfm takes a numeric IPv4 address only");
  }
  return FabricAddress{std::string(text), false};
}

std::string FabricAddress::ToString() const {
  return is_unix ? absl::StrCat(kUnixPrefix, text) : text;
}

}  // namespace switchyard::fabric
