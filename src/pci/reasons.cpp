// SPDX-License-Identifier: Apache-2.0
#include "pci/reasons.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "pci/group.h"
#include "pci/sysfs.h"

namespace switchyard::pci {
namespace {

constexpr char kEnableIommu[] =
    "enable the IOMMU (VT-d or AMD-Vi in the firmware; intel_iommu=on or amd_iommu=on on the "
    "kernel's command line)";

std::string PathOf(const HostRoot& root, const Function& function, absl::string_view name) {
  return root.Path(absl::StrCat(kBusFolder, "/", function.address.ToString(), name));
}

// A group that VFIO made up for a host without an IOMMU (enable_unsafe_noiommu_mode); the IOMMU's
// own groups have no such file. Its node is /dev/vfio/noiommu-N, and it isolates nothing.
bool IsUnsafe(const HostRoot& root, int group) {
  const std::string path = root.Path(absl::StrCat("sys/kernel/iommu_groups/", group));
  if (::access((path + "/name").c_str(), F_OK) != 0) return false;
  const Result<Folder> folder = Folder::Open(path);
  return folder.ok() && folder->Read("name").value_or("") == "vfio-noiommu";
}

// On unbind the kernel takes the link "driver" away first, then waits for whoever has the device
// open; its event file names the driver until that is over.
std::optional<std::string> DriverThatIsLeaving(const HostRoot& root, const Function& self) {
  const Result<Folder> folder = Folder::Open(PathOf(root, self, ""));
  if (!folder.ok()) return std::nullopt;
  for (absl::string_view line : absl::StrSplit(folder->Read("uevent").value_or(""), '\n')) {
    if (absl::ConsumePrefix(&line, "DRIVER=")) return std::string(line);
  }
  return std::nullopt;
}

// On bind the kernel makes the link "driver" first, then the driver makes the folder vfio-dev.
// Kernels before 6.1 have none, nor that class.
bool IsBeingBound(const HostRoot& root, const Function& self) {
  return !self.vfio_cdev.has_value() &&
         ::access(PathOf(root, self, "/vfio-dev").c_str(), F_OK) != 0 &&
         ::access(root.Path("sys/class/vfio-dev").c_str(), F_OK) == 0;
}

std::string NoDriver(const HostRoot& root, const Function& self) {
  const std::optional<std::string> leaving = DriverThatIsLeaving(root, self);
  if (!leaving.has_value()) return "no driver: bind it to vfio-pci";
  return absl::StrCat("being taken from ", *leaving,
                      ": the kernel waits for the process that has it open; end that, or wait");
}

}  // namespace

std::string OfGroup(absl::string_view member, int group) {
  return absl::StrCat(member, " of IOMMU group ", group);
}

std::vector<std::string> OwnReasons(const HostRoot& root, const Function& self) {
  std::vector<std::string> reasons;
  if (!self.iommu_group.has_value()) {
    reasons.push_back(absl::StrCat("no IOMMU group: ", kEnableIommu));
  } else if (IsUnsafe(root, *self.iommu_group)) {
    reasons.push_back(
        absl::StrCat("in VFIO's unsafe no-IOMMU mode, which keeps a VM from none of "
                     "the host's memory: ",
                     kEnableIommu));
  }
  if (!self.driver.has_value()) {
    reasons.push_back(NoDriver(root, self));
  } else if (self.on_vfio && IsBeingBound(root, self)) {
    reasons.push_back(absl::StrCat("being bound to ", *self.driver,
                                   ": it is no VFIO device yet; if it stays so, look at the "
                                   "kernel's log"));
  } else if (!self.on_vfio) {
    reasons.push_back(absl::StrCat(
        "on ", *self.driver, ", which is no vfio driver: ",
        self.IsNvSwitch()
            ? "bind it to vfio-pci only if a VM is to have the NVSwitches; else Fabric "
              "Manager needs it where it is"
            : "unbind it and bind it to vfio-pci"));
  }
  return reasons;
}

std::optional<std::string> MemberReason(const Function& member, int group) {
  if (member.iommu_group.has_value() && *member.iommu_group != group)
    return absl::StrCat(OfGroup(member.address.ToString(), group),
                        " says itself that it is in group ", *member.iommu_group,
                        ": look again, and if it stays so, this is no faithful copy of sysfs");
  if (!member.driver.has_value() || member.on_vfio || *member.driver == "pci-stub")
    return std::nullopt;
  return absl::StrCat(OfGroup(member.address.ToString(), group), " is on ", *member.driver,
                      ": a VM can't have the group; bind it to vfio-pci or unbind it");
}

}  // namespace switchyard::pci
