// SPDX-License-Identifier: Apache-2.0
#include "base/pci_address.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace switchyard {
namespace {

std::optional<std::uint32_t> ParseHex(absl::string_view text, size_t max_digits,
                                      std::uint32_t max) {
  if (text.empty() || text.size() > max_digits) return std::nullopt;
  std::uint64_t value = 0;
  for (char c : text) {
    int digit;
    if (c >= '0' && c <= '9') {
      digit = c - '0';
    } else if (c >= 'a' && c <= 'f') {
      digit = c - 'a' + 10;
    } else if (c >= 'A' && c <= 'F') {
      digit = c - 'A' + 10;
    } else {
      return std::nullopt;
    }
    value = value * 16 + static_cast<std::uint64_t>(digit);
  }
  if (value > max) return std::nullopt;
  return static_cast<std::uint32_t>(value);
}

}  // namespace

Result<PciAddress> PciAddress::Parse(absl::string_view text) {
  const auto invalid = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text.substr(0, 64),
                     "\" is not a PCI address; write DOMAIN:BUS:DEVICE.FUNCTION in hexadecimal, "
                     "such as 0000:19:00.0"));
  };
  const size_t dot = text.rfind('.');
  const size_t colon = text.rfind(':');
  if (dot == absl::string_view::npos || colon == absl::string_view::npos || dot < colon)
    return invalid();
  absl::string_view bus = text.substr(0, colon);
  absl::string_view domain = "0";
  if (const size_t first = bus.find(':'); first != absl::string_view::npos) {
    domain = bus.substr(0, first);
    bus = bus.substr(first + 1);
  }
  const auto d = ParseHex(domain, 8, 0xffffffff);
  const auto b = ParseHex(bus, 2, 0xff);
  const auto s = ParseHex(text.substr(colon + 1, dot - colon - 1), 2, 0x1f);
  const auto f = ParseHex(text.substr(dot + 1), 1, 7);
  if (!d || !b || !s || !f) return invalid();
  return PciAddress{*d, static_cast<std::uint8_t>(*b), static_cast<std::uint8_t>(*s),
                    static_cast<std::uint8_t>(*f)};
}

std::string PciAddress::ToString() const {
  return absl::StrFormat("%04x:%02x:%02x.%x", domain, bus, device, function);
}

}  // namespace switchyard
