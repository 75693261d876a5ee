// SPDX-License-Identifier: Apache-2.0
#pragma once

// Names of NVIDIA's PCI devices, for display and for resource names, never for decisions: first our
// own small table (with pci.ids' own names, of devices newer than Debian 12's file), then the
// pci.ids file. Read once, then immutable; any thread.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace switchyard::pci {

class PciIds {
 public:
  // A missing or unreadable file leaves our own table only. Only the block of vendor 10de is kept.
  [[nodiscard]] static PciIds Load(const std::string& path);

  // "GH100 [H100 SXM5 80GB]" for 0x2330.
  [[nodiscard]] std::optional<std::string> Name(std::uint16_t device) const;

 private:
  std::map<std::uint16_t, std::string> names_;
};

}  // namespace switchyard::pci
