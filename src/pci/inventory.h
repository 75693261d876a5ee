// SPDX-License-Identifier: Apache-2.0
#pragma once

// What sysfs says about GPUs and NVSwitches at one moment, and whether a virtual machine could take
// them. Reads only; blocking; any thread. Nothing is kept: every call reads the tree anew.
//
// Sources of constants: PCI class codes from the PCI Code and ID Assignment Specification; vendor
// 10de is NVIDIA's; sysfs layout from the kernel's Documentation/ABI/testing/sysfs-bus-pci,
// sysfs-kernel-iommu_groups and sysfs-devices-vfio-dev.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/host_root.h"
#include "base/pci_address.h"
#include "base/status.h"

namespace switchyard::pci {

inline constexpr std::uint16_t kVendorNvidia = 0x10de;

// How a VM's monitor opens the device. Decided per device: iommufd if and only if the bound driver
// exposes vfio-dev/vfioN/dev and the host has /dev/iommu (in a tree without dev/:
// /sys/class/misc/iommu).
enum class Backend { kLegacy, kIommufd };
[[nodiscard]] absl::string_view BackendName(Backend backend);  // "legacy", "iommufd"

// One 64- or 32-bit base address register, from the device's "resource" file.
struct Bar {
  int index = 0;            // 0..5
  std::uint64_t bytes = 0;  // size of the region
  bool is_64bit = false;
};

// One PCI function.
struct Function {
  PciAddress address;
  std::uint64_t inode = 0;       // of its folder in sysfs: another one is another device
  std::uint32_t class_code = 0;  // 24 bits, as in the file "class": 0x030200
  std::uint16_t vendor = 0;
  std::uint16_t device = 0;              // filled by Scan only
  std::optional<std::string> driver;     // name of the bound driver
  bool on_vfio = false;                  // that driver is vfio-pci or a variant (exposes vfio-dev)
  std::optional<std::string> vfio_cdev;  // "vfio3" where vfio-dev/vfio3/dev exists
  std::optional<int> iommu_group;
  std::optional<int> numa_node;  // absent for -1; filled by Scan only
  std::vector<Bar> bars;         // filled by Scan only

  // Classes 0x0300 and 0x0302 / 0x0680 of vendor 10de; 0x0604 of anybody.
  [[nodiscard]] bool IsGpu() const;
  [[nodiscard]] bool IsNvSwitch() const;
  [[nodiscard]] bool IsBridge() const;
};

// A GPU or NVSwitch with the rest of its IOMMU group.
struct Device {
  Function self;
  // Every non-bridge function of the group, itself included, by address. Just itself when the
  // device has no group.
  std::vector<Function> members;
  std::optional<Backend> backend;  // absent when not on a vfio driver
  // Why a VM can't take it now, with what to do; absent = ready. Not ready: no IOMMU group, own
  // function not on a vfio driver, or a member on a driver other than none, pci-stub or vfio.
  std::optional<std::string> problem;

  [[nodiscard]] const PciAddress& address() const { return self.address; }
  [[nodiscard]] bool ready() const { return !problem.has_value(); }
  // The lowest address among the members of the same kind (GPU or NVSwitch): the one under which
  // the group is offered and granted as a whole.
  [[nodiscard]] PciAddress Lead() const;
};

// A device that can't be read: reported, never fatal to the others.
struct Problem {
  std::string path;     // the file or folder
  std::string problem;  // what is wrong with it, and the rule
};

struct Inventory {
  std::vector<Device> devices;  // GPUs and NVSwitches, by address
  std::vector<Problem> problems;
  [[nodiscard]] const Device* Find(const PciAddress& address) const;
};

// Everything under <root>/sys/bus/pci/devices. Fails only if that folder can't be listed.
[[nodiscard]] Result<Inventory> Scan(const HostRoot& root);

// One device and its group at the moment of Allocate, with few system calls: without BARs, NUMA
// nodes and device ids, and without cdevs where the host has no iommufd. kNotFound: the device is
// gone. A device that is there but not ready is returned, with its problem. `scanned`, the function
// as an earlier Scan found it, may be null: what never changes while it is the same device is then
// read anew.
[[nodiscard]] Result<Device> ReadDevice(const HostRoot& root, const PciAddress& address,
                                        const Function* scanned = nullptr);

}  // namespace switchyard::pci
