// SPDX-License-Identifier: Apache-2.0
#include "agent/config_values.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace switchyard::agent {
namespace {

struct Unit {
  absl::string_view name;
  absl::Duration length;
};

constexpr size_t kMaxDigits = 9;  // of one number in a duration

const std::array<Unit, 4>& Units() {
  static const std::array<Unit, 4> units = {{{"h", absl::Hours(1)},
                                             {"m", absl::Minutes(1)},
                                             {"s", absl::Seconds(1)},
                                             {"ms", absl::Milliseconds(1)}}};
  return units;
}

Status Invalid(absl::string_view value, absl::string_view rule) {
  return absl::InvalidArgumentError(absl::StrCat(Quote(value), " ", rule));
}

// The longest prefix of `text` whose characters satisfy `is`, taken off it.
absl::string_view TakeWhile(absl::string_view& text, bool (*is)(unsigned char)) {
  size_t length = 0;
  while (length < text.size() && is(static_cast<unsigned char>(text[length]))) ++length;
  const absl::string_view taken = text.substr(0, length);
  text.remove_prefix(length);
  return taken;
}

bool IsAddress(const std::string& host, int family) {
  unsigned char bytes[sizeof(in6_addr)];
  return ::inet_pton(family, host.c_str(), bytes) == 1;
}

}  // namespace

std::string Quote(absl::string_view value) {
  constexpr size_t kMaxShown = 80;
  if (value.size() <= kMaxShown) return absl::StrCat("\"", absl::CHexEscape(value), "\"");
  return absl::StrCat("\"", absl::CHexEscape(value.substr(0, kMaxShown)), "...\" (", value.size(),
                      " bytes)");
}

Result<absl::Duration> ParseDuration(absl::string_view text) {
  constexpr absl::string_view kRule = "is no duration: write 15s, 1m30s or 500ms";
  if (text.empty()) return Invalid(text, kRule);
  absl::Duration total;
  size_t next_unit = 0;  // units come largest first, each once
  for (absl::string_view rest = text; !rest.empty();) {
    const absl::string_view digits = TakeWhile(rest, absl::ascii_isdigit);
    const absl::string_view name = TakeWhile(rest, absl::ascii_isalpha);
    std::int64_t count = 0;
    if (digits.empty() || digits.size() > kMaxDigits || !absl::SimpleAtoi(digits, &count)) {
      return Invalid(text, kRule);
    }
    while (next_unit < Units().size() && Units()[next_unit].name != name) ++next_unit;
    if (next_unit == Units().size()) return Invalid(text, kRule);
    total += count * Units()[next_unit++].length;
  }
  return total;
}

std::string DurationText(absl::Duration duration) {
  std::string text;
  for (const Unit& unit : Units()) {
    const std::int64_t count = absl::IDivDuration(duration, unit.length, &duration);
    if (count != 0) absl::StrAppend(&text, count, unit.name);
  }
  return text.empty() ? "0s" : text;
}

Status CheckPath(absl::string_view path, size_t max_bytes) {
  if (!absl::StartsWith(path, "/")) {
    return Invalid(path, "is no absolute path: it must begin with /");
  }
  if (path.size() > max_bytes) {
    return Invalid(path, absl::StrCat("is too long: at most ", max_bytes, " bytes"));
  }
  if (std::any_of(path.begin(), path.end(), absl::ascii_iscntrl)) {
    return Invalid(path, "has a control character in it");
  }
  return OkStatus();
}

Status CheckResourceName(absl::string_view name) {
  constexpr size_t kMaxBytes = 63;
  const auto in_the_middle = [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
  };
  if (name.empty() || name.size() > kMaxBytes || !absl::ascii_isalnum(name.front()) ||
      !absl::ascii_isalnum(name.back()) || !std::all_of(name.begin(), name.end(), in_the_middle)) {
    return Invalid(name,
                   "is no resource name: 1 to 63 letters, digits, - _ and ., a letter or digit at "
                   "both ends, without \"nvidia.com/\"");
  }
  return OkStatus();
}

Status CheckNodeName(absl::string_view name) {
  constexpr size_t kMaxBytes = 253;
  const auto at_an_end = [](unsigned char c) {
    return absl::ascii_islower(c) || absl::ascii_isdigit(c);
  };
  const std::vector<absl::string_view> labels = absl::StrSplit(name, '.');
  const bool fits = std::all_of(labels.begin(), labels.end(), [&](absl::string_view label) {
    return !label.empty() && at_an_end(label.front()) && at_an_end(label.back()) &&
           std::all_of(label.begin(), label.end(),
                       [&](unsigned char c) { return at_an_end(c) || c == '-'; });
  });
  if (!fits || name.size() > kMaxBytes) {
    return Invalid(name,
                   "is no node's name: at most 253 lower-case letters, digits, - and ., as "
                   "`kubectl get nodes` shows it");
  }
  return OkStatus();
}

Result<std::uint16_t> ParseDeviceId(absl::string_view text) {
  unsigned id = 0;
  if (text.size() != 6 || !absl::StartsWith(text, "0x") || !absl::ascii_isxdigit(text[2]) ||
      !absl::SimpleHexAtoi(text, &id)) {
    return Invalid(text, "is no PCI device id: write 0x and four hexadecimal digits, like 0x2330");
  }
  return static_cast<std::uint16_t>(id);
}

Result<HttpAddress> ParseHttpAddress(absl::string_view text) {
  constexpr absl::string_view kRule =
      "is no address to listen on: write IP:PORT, like 127.0.0.1:9417, 0.0.0.0:9417 or "
      "[::1]:9417 (no host names)";
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos) return Invalid(text, kRule);
  absl::string_view host = text.substr(0, colon);
  const absl::string_view port = text.substr(colon + 1);
  const bool brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (brackets) host = host.substr(1, host.size() - 2);

  HttpAddress address;
  address.host = std::string(host);
  // inet_pton reads a C string: a NUL would hide what follows it.
  if (host.find('\0') != absl::string_view::npos ||
      !IsAddress(address.host, brackets ? AF_INET6 : AF_INET)) {
    return Invalid(text, kRule);
  }
  unsigned number = 0;
  if (port.empty() || !std::all_of(port.begin(), port.end(), absl::ascii_isdigit) ||
      !absl::SimpleAtoi(port, &number) || number > 65535) {
    return Invalid(text, "has no port: 0 to 65535 after the last colon (0 = any free one)");
  }
  address.port = static_cast<std::uint16_t>(number);
  return address;
}

std::string HttpAddress::ToString() const {
  const bool v6 = absl::StrContains(host, ":");
  return absl::StrCat(v6 ? "[" : "", host, v6 ? "]" : "", ":", port);
}

bool HttpAddress::IsLoopback() const { return absl::StartsWith(host, "127.") || host == "::1"; }

std::string OwnerLockPath(const Config& config) {
  return absl::StrCat(config.paths.state, "/agent.lock");
}

}  // namespace switchyard::agent
