// SPDX-License-Identifier: Apache-2.0
#include "pci/group.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pci/function.h"
#include "pci/reasons.h"
#include "pci/sysfs.h"

namespace switchyard::pci {
namespace {

// A group without ACS can hold a whole machine: name this many, count the rest.
constexpr size_t kMaxReasons = 8;

Result<Function> ReadMember(const HostRoot& root, const std::string& name, Detail detail) {
  ASSIGN_OR_RETURN(const PciAddress address, PciAddress::Parse(name));
  ASSIGN_OR_RETURN(const Folder folder,
                   Folder::Open(root.Path(absl::StrCat(kBusFolder, "/", name))));
  return ReadFunction(folder, address, detail);
}

bool IsFolder(const std::string& path) {
  struct stat info = {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

std::optional<std::string> Join(const std::vector<std::string>& reasons) {
  if (reasons.empty()) return std::nullopt;
  const size_t shown = std::min(reasons.size(), kMaxReasons);
  std::string text = absl::StrJoin(reasons.begin(), reasons.begin() + shown, "; ");
  if (shown < reasons.size())
    absl::StrAppend(&text, "; and ", reasons.size() - shown, " more of the group");
  return text;
}

}  // namespace

bool HostHasIommufd(const HostRoot& root) {
  if (::access(root.Path("dev/iommu").c_str(), F_OK) == 0) return true;
  // A copy of somebody's /sys has no dev/.
  return !IsFolder(root.Path("dev")) &&
         ::access(root.Path("sys/class/misc/iommu").c_str(), F_OK) == 0;
}

std::set<std::string> ListedInGroup(const HostRoot& root, int group) {
  const Result<std::vector<std::string>> names =
      Folder::ListPath(root.Path(absl::StrCat("sys/kernel/iommu_groups/", group, "/devices")));
  if (!names.ok()) return {};
  return {names->begin(), names->end()};
}

Result<std::set<std::string>> LinkedToGroup(const HostRoot& root, int group) {
  std::set<std::string> linked;
  ASSIGN_OR_RETURN(const Folder bus, Folder::Open(root.Path(kBusFolder)));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, bus.List("."));
  for (const std::string& name : names) {
    const Result<Folder> function = bus.OpenChild(name);
    if (absl::IsNotFound(function.status())) continue;  // gone since it was listed
    if (!function.ok()) return function.status();
    const Result<std::optional<int>> its_group = ReadIommuGroup(*function);
    if (!its_group.ok()) return Annotate(its_group.status(), function->path());
    if (*its_group == group) linked.insert(name);
  }
  return linked;
}

Device WithGroup(const HostRoot& root, Function self, const std::set<std::string>& names,
                 Detail detail) {
  Device device;
  std::vector<std::string> reasons = OwnReasons(root, self);
  const std::string own_name = self.address.ToString();
  device.members.push_back(self);
  for (const std::string& name : names) {
    if (name == own_name || !self.iommu_group.has_value()) continue;
    Result<Function> member = ReadMember(root, name, detail);
    if (!member.ok()) {
      reasons.push_back(absl::StrCat(OfGroup(name, *self.iommu_group), " can't be read (",
                                     absl::string_view(member.status().message()),
                                     "): a VM can't have the group until it can"));
    } else if (!member->IsBridge()) {
      if (auto reason = MemberReason(*member, *self.iommu_group)) reasons.push_back(*reason);
      device.members.push_back(*std::move(member));
    }
  }
  std::sort(device.members.begin(), device.members.end(),
            [](const Function& a, const Function& b) { return a.address < b.address; });
  if (self.on_vfio) {
    device.backend =
        self.vfio_cdev.has_value() && HostHasIommufd(root) ? Backend::kIommufd : Backend::kLegacy;
  }
  device.problem = Join(reasons);
  device.self = std::move(self);
  return device;
}

}  // namespace switchyard::pci
