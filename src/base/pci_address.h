// SPDX-License-Identifier: Apache-2.0
#pragma once

// The PCI address of a function: the only identity of a GPU. Held as integers, so the spellings
// "00000000:0F:00.0", "0000:0f:00.0" and "0f:00.0" are one address. A plain value; any thread.

#include <compare>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "base/status.h"

namespace switchyard {

struct PciAddress {
  std::uint32_t domain = 0;  // 16 bits on most machines, 32 with VMD
  std::uint8_t bus = 0;
  std::uint8_t device = 0;    // 0..31
  std::uint8_t function = 0;  // 0..7

  // Accepts [DOMAIN:]BUS:DEVICE.FUNCTION in hexadecimal, any case, a domain of one to eight digits
  // (none = 0). kInvalidArgument names the text and the rule otherwise.
  [[nodiscard]] static Result<PciAddress> Parse(absl::string_view text);

  // As sysfs spells it: "0000:0f:00.0", lower case; the domain has more digits only if it needs
  // them.
  [[nodiscard]] std::string ToString() const;

  friend auto operator<=>(const PciAddress&, const PciAddress&) = default;

  template <typename H>
  friend H AbslHashValue(H h, const PciAddress& a) {
    return H::combine(std::move(h), a.domain, a.bus, a.device, a.function);
  }
};

}  // namespace switchyard
