// SPDX-License-Identifier: Apache-2.0
#pragma once

// Names of NVIDIA's PCI devices, for display and for resource names, never for decisions: first our
// own small table (with pci.ids' own names, of devices newer than Debian 12's file), then the
// pci.ids file, which is read (once) when first a name is asked for that our table lacks: it is
// longer than a MiB, and most nodes do without. Copies share it; any thread.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace switchyard::pci {

class PciIds {
 public:
  // A missing or unreadable file leaves our own table only. Only the block of vendor 10de is kept.
  explicit PciIds(std::string path);

  // "GH100 [H100 SXM5 80GB]" for 0x2330.
  [[nodiscard]] std::optional<std::string> Name(std::uint16_t device) const;

 private:
  class File;
  std::shared_ptr<File> file_;
};

}  // namespace switchyard::pci
