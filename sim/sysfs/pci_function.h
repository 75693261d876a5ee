// SPDX-License-Identifier: Apache-2.0
#pragma once

// One PCI function as the simulator makes it, and the texts of its sysfs files. Plain values and
// pure functions; any thread. Formats: the kernel's Documentation/ABI/testing/sysfs-bus-pci.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/pci_address.h"

namespace switchyard::sim {

struct BarSpec {
  int index = 0;  // 0..5; a 64-bit one takes the next index too
  std::uint64_t bytes = 0;
  bool is_64bit = false;
};

struct FunctionSpec {
  PciAddress address;
  std::uint16_t vendor = 0x10de;
  std::uint16_t device = 0;
  std::uint32_t class_code = 0;  // 24 bits
  int numa_node = -1;
  std::string driver;  // empty: none
  std::vector<BarSpec> bars;
  std::string vpd;  // raw bytes; empty: no such file
};

[[nodiscard]] FunctionSpec GpuSpec(const PciAddress& address, std::uint16_t device, int numa_node);
[[nodiscard]] FunctionSpec NvSwitchSpec(const PciAddress& address, std::uint16_t device);
// One function of a ConnectX-7 that manages the NVSwitches of a Blackwell board: its VPD says
// SW_MNG.
[[nodiscard]] FunctionSpec SwitchManagerSpec(const PciAddress& address);

// Another function in a GPU's IOMMU group.
enum class Companion { kAudio, kUsb, kUcsi, kBridge };
[[nodiscard]] FunctionSpec CompanionSpec(const PciAddress& gpu, int numa_node, Companion kind);

// vfio-pci and its variants: the drivers that expose vfio-dev.
[[nodiscard]] bool IsVfioDriver(absl::string_view driver);

// The file "resource": a line for each of 13 regions. `base` is where the 64-bit ones are put.
[[nodiscard]] std::string ResourceText(const FunctionSpec& function, std::uint64_t base);
[[nodiscard]] std::string ModaliasText(const FunctionSpec& function);

}  // namespace switchyard::sim
