// SPDX-License-Identifier: Apache-2.0
#include "sim/sysfs/pci_function.h"

#include <array>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace switchyard::sim {
namespace {

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kMiB = 1024 * kKiB;
constexpr std::uint64_t kGiB = 1024 * kMiB;

constexpr std::uint16_t kH100 = 0x2330;
constexpr std::uint16_t kB200 = 0x2901;
constexpr std::uint16_t kA100 = 0x20b2;
constexpr std::uint16_t kV100 = 0x1db8;
constexpr std::uint16_t kMellanox = 0x15b3;
constexpr std::uint16_t kConnectX7 = 0x1021;

// IORESOURCE_MEM with what the BAR says of itself (include/linux/ioport.h).
constexpr std::uint64_t kFlags32 = 0x0000000000040200;
constexpr std::uint64_t kFlags64Prefetch = 0x000000000014220c;
constexpr int kRegions = 13;  // 6 BARs, ROM, 6 of SR-IOV

// As lspci shows them on such cards.
std::vector<BarSpec> GpuBars(std::uint16_t device) {
  switch (device) {
    case kB200:
      return {{0, 64 * kMiB, true}, {2, 256 * kGiB, true}, {4, 32 * kMiB, true}};
    case kA100:
      return {{0, 16 * kMiB, false}, {1, 128 * kGiB, true}, {3, 32 * kMiB, true}};
    case kV100:
      return {{0, 16 * kMiB, false}, {1, 32 * kGiB, true}, {3, 32 * kMiB, true}};
    case kH100:
    default:
      return {{0, 16 * kMiB, true}, {2, 128 * kGiB, true}, {4, 32 * kMiB, true}};
  }
}

// Vital product data: an identifier string, then a read-only field (PCI 3.0, appendix I).
std::string Vpd(absl::string_view name, absl::string_view field) {
  const std::string keyword =
      absl::StrCat("V3", std::string(1, static_cast<char>(field.size())), field);
  std::string vpd = "\x82";
  vpd += static_cast<char>(name.size());
  vpd += '\0';
  absl::StrAppend(&vpd, name, "\x90");
  vpd += static_cast<char>(keyword.size());
  vpd += '\0';
  absl::StrAppend(&vpd, keyword, "\x78");
  return vpd;
}

}  // namespace

FunctionSpec GpuSpec(const PciAddress& address, std::uint16_t device, int numa_node) {
  FunctionSpec spec;
  spec.address = address;
  spec.device = device;
  spec.class_code = 0x030200;  // 3D controller
  spec.numa_node = numa_node;
  spec.bars = GpuBars(device);
  return spec;
}

FunctionSpec NvSwitchSpec(const PciAddress& address, std::uint16_t device) {
  FunctionSpec spec;
  spec.address = address;
  spec.device = device;
  spec.class_code = 0x068000;  // bridge, other
  spec.numa_node = address.bus < 0x80 ? 0 : 1;
  spec.bars = {{0, 32 * kMiB, false}};
  return spec;
}

FunctionSpec SwitchManagerSpec(const PciAddress& address) {
  FunctionSpec spec;
  spec.address = address;
  spec.vendor = kMellanox;
  spec.device = kConnectX7;
  spec.class_code = 0x020700;  // InfiniBand controller
  spec.numa_node = 0;
  spec.driver = "mlx5_core";
  spec.bars = {{0, 32 * kMiB, true}};
  spec.vpd = Vpd("Nvidia ConnectX-7 mezz for HGX", "SW_MNG");
  return spec;
}

FunctionSpec CompanionSpec(const PciAddress& gpu, int numa_node, Companion kind) {
  FunctionSpec spec;
  spec.address = gpu;
  spec.numa_node = numa_node;
  switch (kind) {
    case Companion::kAudio:
      spec.address.function = 1;
      spec.device = 0x22ba;
      spec.class_code = 0x040300;
      spec.driver = "snd_hda_intel";
      spec.bars = {{0, 16 * kKiB, false}};
      break;
    case Companion::kUsb:
      spec.address.function = 2;
      spec.device = 0x1ad6;
      spec.class_code = 0x0c0330;
      spec.driver = "xhci_hcd";
      spec.bars = {{0, 256 * kKiB, true}};
      break;
    case Companion::kUcsi:
      spec.address.function = 3;
      spec.device = 0x1ad7;
      spec.class_code = 0x0c8000;
      spec.driver = "nvidia-gpu";
      spec.bars = {{0, 4 * kKiB, false}};
      break;
    case Companion::kBridge:
      spec.address.device = 0x1f;
      spec.address.function = 0;
      spec.vendor = 0x10b5;
      spec.device = 0x8796;
      spec.class_code = 0x060400;
      spec.driver = "pcieport";
      break;
  }
  return spec;
}

bool IsVfioDriver(absl::string_view driver) {
  return absl::EndsWith(driver, "vfio-pci") || absl::EndsWith(driver, "vfio_pci");
}

std::string ResourceText(const FunctionSpec& function, std::uint64_t base) {
  struct Region {
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    std::uint64_t flags = 0;
  };
  std::array<Region, kRegions> regions;
  std::uint64_t next_32bit = 0x90000000 + (static_cast<std::uint64_t>(function.address.bus) << 21);
  for (const BarSpec& bar : function.bars) {
    std::uint64_t& next = bar.is_64bit ? base : next_32bit;
    next = (next + bar.bytes - 1) / bar.bytes * bar.bytes;  // a BAR is aligned to its size
    regions.at(bar.index) = {next, next + bar.bytes - 1,
                             bar.is_64bit ? kFlags64Prefetch : kFlags32};
    next += bar.bytes;
  }
  std::string text;
  for (const Region& region : regions) {
    absl::StrAppendFormat(&text, "0x%016x 0x%016x 0x%016x\n", region.start, region.end,
                          region.flags);
  }
  return text;
}

std::string ModaliasText(const FunctionSpec& f) {
  return absl::StrFormat("pci:v%08Xd%08Xsv%08Xsd%08Xbc%02Xsc%02Xi%02X\n", f.vendor, f.device,
                         f.vendor, 0, f.class_code >> 16, (f.class_code >> 8) & 0xff,
                         f.class_code & 0xff);
}

}  // namespace switchyard::sim
