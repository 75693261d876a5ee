// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests: a sysfs tree in a folder of its own under /tmp, laid out with links as the kernel's,
// that a test edits as the kernel would. The destructor removes it. Header-only, without
// GoogleTest; a failing file operation throws. One thread at a time.

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/host_root.h"

namespace switchyard::pci::testing {

inline constexpr std::uint32_t kClassVga = 0x030000;
inline constexpr std::uint32_t kClass3d = 0x030200;
inline constexpr std::uint32_t kClassAudio = 0x040300;
inline constexpr std::uint32_t kClassBridge = 0x060400;  // PCI to PCI
inline constexpr std::uint32_t kClassNvSwitch = 0x068000;
inline constexpr std::uint32_t kClassNvme = 0x010802;

// A function as it is added; the default is a GPU that a VM could take.
struct FakeFunction {
  std::string address;  // as sysfs spells it: "0000:19:00.0"
  std::uint32_t class_code = kClass3d;
  std::uint16_t vendor = 0x10de;
  std::uint16_t device = 0x2330;
  std::optional<std::string> driver = "vfio-pci";
  std::optional<int> group = std::nullopt;  // none: no IOMMU
  std::optional<int> numa_node = 0;         // -1 as the kernel writes it; none: no such file
  std::optional<int> vfio = std::nullopt;   // N: the folder vfio-dev/vfioN with its file "dev"
};

class SysfsTree {
 public:
  SysfsTree() {
    std::string folder = "/tmp/sysfs-XXXXXX";
    if (::mkdtemp(folder.data()) == nullptr) std::abort();
    folder_ = folder;
    std::filesystem::create_directories(folder_ / "sys/bus/pci/devices");
  }
  ~SysfsTree() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  SysfsTree(const SysfsTree&) = delete;
  SysfsTree& operator=(const SysfsTree&) = delete;

  [[nodiscard]] HostRoot root() const { return HostRoot(folder_.string()); }
  // relative: "sys/class/misc/iommu", without a leading slash.
  [[nodiscard]] std::string Path(const std::string& relative) const { return folder_ / relative; }

  void AddFunction(const FakeFunction& f) {
    std::filesystem::create_directories(Device(f.address));
    Link("sys/bus/pci/devices/" + f.address, "../../../devices/pci0000:00/" + f.address);
    SetFile(f.address, "vendor", absl::StrFormat("0x%04x\n", f.vendor));
    SetFile(f.address, "device", absl::StrFormat("0x%04x\n", f.device));
    SetFile(f.address, "class", absl::StrFormat("0x%06x\n", f.class_code));
    if (f.numa_node) SetFile(f.address, "numa_node", absl::StrCat(*f.numa_node, "\n"));
    SetDriver(f.address, f.driver);
    SetGroup(f.address, f.group);
    SetVfio(f.address, f.vfio);
  }
  void AddGpu(const std::string& address, int group, std::optional<int> numa_node = 0) {
    AddFunction({.address = address, .group = group, .numa_node = numa_node});
  }
  void AddNvSwitch(const std::string& address, int group) {
    AddFunction(
        {.address = address, .class_code = kClassNvSwitch, .device = 0x22a3, .group = group});
  }

  // The bound driver; none: unbound. Leaves vfio-dev as it is.
  void SetDriver(const std::string& address, const std::optional<std::string>& driver) {
    std::filesystem::remove(Device(address) / "driver");
    if (driver) Link(DevicePath(address, "driver"), "../../../bus/pci/drivers/" + *driver);
  }
  // Moves the function to another group: its own link and both groups' lists.
  void SetGroup(const std::string& address, std::optional<int> group) {
    const std::filesystem::path link = Device(address) / "iommu_group";
    if (std::filesystem::is_symlink(link)) {
      std::filesystem::remove(folder_ / "sys/kernel/iommu_groups" /
                              std::filesystem::read_symlink(link).filename() / "devices" / address);
      std::filesystem::remove(link);
    }
    if (!group) return;
    Link(DevicePath(address, "iommu_group"), absl::StrCat("../../../kernel/iommu_groups/", *group));
    Link(absl::StrCat("sys/kernel/iommu_groups/", *group, "/devices/", address),
         "../../../../devices/pci0000:00/" + address);
  }
  // vfio-dev/vfioN, and in it the file "dev" (the kernel makes /dev/vfio/devices/vfioN) or not.
  void SetVfio(const std::string& address, std::optional<int> number, bool cdev = true) {
    std::filesystem::remove_all(Device(address) / "vfio-dev");
    if (!number) return;
    const std::string folder = absl::StrCat("vfio-dev/vfio", *number);
    std::filesystem::create_directories(Device(address) / folder);
    if (cdev) SetFile(address, folder + "/dev", absl::StrCat("511:", *number, "\n"));
  }
  // What says that the host has iommufd: dev/iommu (which makes dev/) and sys/class/misc/iommu.
  void AddIommufd(bool with_dev = true) {
    Write("sys/class/misc/iommu/dev", "10:125\n");
    if (with_dev) Write("dev/iommu", "");
  }

  // A file of the function, as "numa_node".
  void SetFile(const std::string& address, const std::string& name, const std::string& content) {
    Write(DevicePath(address, name), content);
  }
  void RemoveFile(const std::string& address, const std::string& name) {
    std::filesystem::remove_all(Device(address) / name);
  }
  // Hot removal: folder, link on the bus, place in the group.
  void Remove(const std::string& address) {
    SetGroup(address, std::nullopt);
    std::filesystem::remove_all(Device(address));
    std::filesystem::remove(folder_ / "sys/bus/pci/devices" / address);
  }
  // The moment inside a removal when the link on the bus leads nowhere.
  void RemoveFolderOnly(const std::string& address) {
    std::filesystem::remove_all(Device(address));
  }

  void Write(const std::string& relative, const std::string& content) {
    const std::filesystem::path path = folder_ / relative;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::trunc) << content;
  }
  void Link(const std::string& relative, const std::string& target) {
    const std::filesystem::path path = folder_ / relative;
    std::filesystem::create_directories(path.parent_path());
    std::filesystem::create_symlink(target, path);
  }

 private:
  static std::string DevicePath(const std::string& address, const std::string& name) {
    return absl::StrCat("sys/devices/pci0000:00/", address, "/", name);
  }
  [[nodiscard]] std::filesystem::path Device(const std::string& address) const {
    return folder_ / "sys/devices/pci0000:00" / address;
  }

  std::filesystem::path folder_;
};

}  // namespace switchyard::pci::testing
