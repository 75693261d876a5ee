// SPDX-License-Identifier: Apache-2.0
#pragma once

// The grammar of single configuration values. Pure. Every error is kInvalidArgument and reads on
// after the key: "\"15\" is no duration: write 15s, 1m30s or 500ms".

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "agent/config.h"
#include "base/status.h"

namespace switchyard::agent {

// The value as an error shows it: quoted, escaped, cut at 80 bytes.
[[nodiscard]] std::string Quote(absl::string_view value);

// Whole numbers with the units h, m, s, ms, largest first, each once: 15s, 1m30s, 500ms.
[[nodiscard]] Result<absl::Duration> ParseDuration(absl::string_view text);
[[nodiscard]] std::string DurationText(absl::Duration duration);

// Absolute, at most `max_bytes` long, no control characters.
[[nodiscard]] Status CheckPath(absl::string_view path, size_t max_bytes);

// The part after "nvidia.com/" of an extended resource, by Kubernetes' grammar of qualified names.
[[nodiscard]] Status CheckResourceName(absl::string_view name);

// The name of a Node object: a DNS subdomain.
[[nodiscard]] Status CheckNodeName(absl::string_view name);

// "0x2330": 0x and four hexadecimal digits.
[[nodiscard]] Result<std::uint16_t> ParseDeviceId(absl::string_view text);

// "127.0.0.1:9417" or "[::1]:9417". No host names: a node agent doesn't wait for DNS.
[[nodiscard]] Result<HttpAddress> ParseHttpAddress(absl::string_view text);

}  // namespace switchyard::agent
