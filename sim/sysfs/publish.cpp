// SPDX-License-Identifier: Apache-2.0
// How SysfsTree shows one function: folder, attributes, group, driver, vfio.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "sim/sysfs/paths.h"
#include "sim/sysfs/sysfs_tree.h"

namespace switchyard::sim {
namespace {

// Where the 64-bit BARs of a bus are put: 1 TiB each, above all memory.
std::uint64_t BarBase(const PciAddress& address) { return (0x2000ULL + address.bus) << 40; }

std::vector<std::string> PciKeys(const FunctionSpec& spec) {
  return {absl::StrFormat("PCI_CLASS=%X", spec.class_code),
          absl::StrFormat("PCI_ID=%04X:%04X", spec.vendor, spec.device),
          absl::StrCat("PCI_SLOT_NAME=", spec.address.ToString())};
}

}  // namespace

Status SysfsTree::Publish(FunctionState& f, std::optional<int> vfio) {
  const std::string folder = DeviceFolder(f.spec.address);
  const std::string name = f.spec.address.ToString();
  RETURN_IF_ERROR(edit_.Folder(folder));
  RETURN_IF_ERROR(WriteAttributes(f));
  RETURN_IF_ERROR(edit_.Link(absl::StrCat(folder, "/subsystem"), "sys/bus/pci"));

  const std::string group = GroupFolder(f.group);
  RETURN_IF_ERROR(edit_.Folder(absl::StrCat(group, "/devices")));
  RETURN_IF_ERROR(edit_.Link(absl::StrCat(group, "/devices/", name), folder));
  RETURN_IF_ERROR(edit_.Link(absl::StrCat(folder, "/iommu_group"), group));

  RETURN_IF_ERROR(edit_.Link(absl::StrCat("sys/bus/pci/devices/", name), folder));
  RETURN_IF_ERROR(Send("add", DevPath(f.spec.address), "pci", PciKeys(f.spec)));
  return Bind(f, vfio);
}

Status SysfsTree::Withdraw(FunctionState& f) {
  const std::string name = f.spec.address.ToString();
  RETURN_IF_ERROR(Unbind(f));
  RETURN_IF_ERROR(edit_.Remove(absl::StrCat("sys/bus/pci/devices/", name)));
  RETURN_IF_ERROR(edit_.Remove(absl::StrCat(GroupFolder(f.group), "/devices/", name)));
  bool last = true;
  for (const auto& [address, other] : functions_) {
    const bool elsewhere = &other == &f || other.group != f.group;
    last = last && (elsewhere || !edit_.Exists(DeviceFolder(address)));
  }
  if (last) RETURN_IF_ERROR(edit_.Remove(GroupFolder(f.group)));
  RETURN_IF_ERROR(edit_.Remove(DeviceFolder(f.spec.address)));
  return Send("remove", DevPath(f.spec.address), "pci", PciKeys(f.spec));
}

Status SysfsTree::WriteAttributes(const FunctionState& f) {
  const FunctionSpec& spec = f.spec;
  const std::string folder = absl::StrCat(DeviceFolder(spec.address), "/");
  const auto id = [](std::uint16_t value) { return absl::StrFormat("0x%04x\n", value); };
  RETURN_IF_ERROR(edit_.Write(folder + "vendor", id(spec.vendor)));
  RETURN_IF_ERROR(edit_.Write(folder + "device", id(spec.device)));
  RETURN_IF_ERROR(edit_.Write(folder + "class", absl::StrFormat("0x%06x\n", spec.class_code)));
  RETURN_IF_ERROR(edit_.Write(folder + "driver_override", "(null)\n"));
  RETURN_IF_ERROR(edit_.Write(folder + "modalias", ModaliasText(spec)));
  if (!spec.vpd.empty()) RETURN_IF_ERROR(edit_.Write(folder + "vpd", spec.vpd));

  std::string resource = ResourceText(spec, BarBase(spec.address));
  if (f.defects.contains(Defect::kShortResource)) {
    resource = "0x0000000000000000 0x0000000000000000\n";  // two fields instead of three
  }
  RETURN_IF_ERROR(edit_.Write(folder + "resource", resource));
  if (f.defects.contains(Defect::kNoNumaNode)) return edit_.Remove(folder + "numa_node");
  return edit_.Write(folder + "numa_node", absl::StrCat(spec.numa_node, "\n"));
}

Status SysfsTree::WriteUevent(const FunctionState& f, const std::string& driver) {
  std::vector<std::string> lines = PciKeys(f.spec);
  if (!driver.empty()) lines.insert(lines.begin(), absl::StrCat("DRIVER=", driver));
  return edit_.Write(DeviceFolder(f.spec.address) + "/uevent",
                     absl::StrCat(absl::StrJoin(lines, "\n"), "\n"));
}

Status SysfsTree::Bind(FunctionState& f, std::optional<int> vfio) {
  const std::string& driver = f.spec.driver;
  RETURN_IF_ERROR(WriteUevent(f, driver));
  if (driver.empty()) return OkStatus();
  const std::string folder = DeviceFolder(f.spec.address);
  // A module's name has no hyphens; a driver's may (Documentation: sysfs-module).
  const std::string module = absl::StrCat("sys/module/", absl::StrReplaceAll(driver, {{"-", "_"}}));
  RETURN_IF_ERROR(edit_.Folder(module));
  RETURN_IF_ERROR(edit_.Folder(DriverFolder(driver)));
  RETURN_IF_ERROR(edit_.Link(DriverFolder(driver) + "/module", module));
  // The links come first, as in the kernel: what the driver makes is there only after its probe.
  RETURN_IF_ERROR(
      edit_.Link(absl::StrCat(DriverFolder(driver), "/", f.spec.address.ToString()), folder));
  RETURN_IF_ERROR(edit_.Link(folder + "/driver", DriverFolder(driver)));
  if (IsVfioDriver(driver)) RETURN_IF_ERROR(MakeVfio(f, vfio));
  return Send("bind", DevPath(f.spec.address), "pci", {absl::StrCat("DRIVER=", driver)});
}

Status SysfsTree::Unbind(FunctionState& f) {
  const std::string& driver = f.spec.driver;
  if (driver.empty()) return OkStatus();
  RETURN_IF_ERROR(edit_.Remove(DeviceFolder(f.spec.address) + "/driver"));
  RETURN_IF_ERROR(edit_.Remove(absl::StrCat(DriverFolder(driver), "/", f.spec.address.ToString())));
  if (f.vfio.has_value()) RETURN_IF_ERROR(RemoveVfio(f));
  RETURN_IF_ERROR(WriteUevent(f, ""));
  return Send("unbind", DevPath(f.spec.address), "pci");
}

Status SysfsTree::MakeVfio(FunctionState& f, std::optional<int> vfio) {
  const PciAddress& address = f.spec.address;
  const int n = vfio.value_or(LowestFreeVfio());
  if (!GroupHasVfio(f.group)) {
    ASSIGN_OR_RETURN(std::string number, nodes_.Make(absl::StrCat("dev/vfio/", f.group), 0600));
    RETURN_IF_ERROR(edit_.Folder(VfioGroupFolder(f.group)));
    RETURN_IF_ERROR(edit_.Write(VfioGroupFolder(f.group) + "/dev", number));
    RETURN_IF_ERROR(edit_.Link(absl::StrCat("sys/class/vfio/", f.group), VfioGroupFolder(f.group)));
    RETURN_IF_ERROR(Send("add", absl::StrCat("/devices/virtual/vfio/", f.group), "vfio"));
  }
  f.vfio = n;
  RETURN_IF_ERROR(edit_.Folder(VfioFolder(address, n)));
  RETURN_IF_ERROR(edit_.Link(VfioFolder(address, n) + "/device", DeviceFolder(address)));
  if (iommufd_ && !f.defects.contains(Defect::kNoCdev)) {
    ASSIGN_OR_RETURN(std::string number, nodes_.Make("dev/vfio/devices/" + VfioName(n), 0600));
    RETURN_IF_ERROR(edit_.Write(VfioFolder(address, n) + "/dev", number));
  }
  RETURN_IF_ERROR(edit_.Link("sys/class/vfio-dev/" + VfioName(n), VfioFolder(address, n)));
  return Send("add", absl::StrCat(DevPath(address), "/vfio-dev/", VfioName(n)), "vfio-dev");
}

Status SysfsTree::RemoveVfio(FunctionState& f) {
  const PciAddress& address = f.spec.address;
  const int n = *f.vfio;
  RETURN_IF_ERROR(RemoveCdev(f));
  RETURN_IF_ERROR(edit_.Remove("sys/class/vfio-dev/" + VfioName(n)));
  RETURN_IF_ERROR(edit_.Remove(DeviceFolder(address) + "/vfio-dev"));
  f.vfio.reset();
  RETURN_IF_ERROR(
      Send("remove", absl::StrCat(DevPath(address), "/vfio-dev/", VfioName(n)), "vfio-dev"));
  if (GroupHasVfio(f.group)) return OkStatus();
  RETURN_IF_ERROR(nodes_.Remove(absl::StrCat("dev/vfio/", f.group)));
  RETURN_IF_ERROR(edit_.Remove(absl::StrCat("sys/class/vfio/", f.group)));
  RETURN_IF_ERROR(edit_.Remove(VfioGroupFolder(f.group)));
  RETURN_IF_ERROR(edit_.RemoveIfEmpty("sys/devices/virtual/vfio"));
  return Send("remove", absl::StrCat("/devices/virtual/vfio/", f.group), "vfio");
}

Status SysfsTree::RemoveCdev(const FunctionState& f) {
  RETURN_IF_ERROR(nodes_.Remove("dev/vfio/devices/" + VfioName(*f.vfio)));
  // The kernel removes the folder with the last of them: an inotify watch on it ends.
  RETURN_IF_ERROR(edit_.RemoveIfEmpty("dev/vfio/devices"));
  return edit_.Remove(VfioFolder(f.spec.address, *f.vfio) + "/dev");
}

bool SysfsTree::GroupHasVfio(int group) const {
  for (const auto& [address, f] : functions_) {
    if (f.group == group && f.vfio.has_value()) return true;
  }
  return false;
}

int SysfsTree::LowestFreeVfio() const {
  std::set<int> used;
  for (const auto& [address, f] : functions_) {
    if (f.vfio.has_value()) used.insert(*f.vfio);
  }
  int n = 0;
  while (used.contains(n)) ++n;
  return n;
}

}  // namespace switchyard::sim
