// SPDX-License-Identifier: Apache-2.0
#include "pci/vfio_nodes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <optional>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "base/unique_fd.h"
#include "pci/group.h"
#include "pci/holders.h"

namespace switchyard::pci {
namespace {

constexpr size_t kMaxDevices = 64 * 1024;

// "243:12" of a sysfs file "dev". 0:0 is no device.
Result<dev_t> ParseNumber(absl::string_view text, absl::string_view path) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits(':', 1));
  unsigned major_number = 0;
  unsigned minor_number = 0;
  if (!absl::SimpleAtoi(parts.first, &major_number) ||
      !absl::SimpleAtoi(parts.second, &minor_number))
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": \"", text, "\" is no device number MAJOR:MINOR"));
  return makedev(major_number, minor_number);
}

// Absent without the file.
Result<std::optional<dev_t>> ReadNumber(const Folder& folder, const std::string& file) {
  const Result<std::string> text = folder.Read(file.c_str());
  if (absl::IsNotFound(text.status())) return std::nullopt;
  if (!text.ok()) return Annotate(text.status(), folder.path());
  return ParseNumber(*text, absl::StrCat(folder.path(), "/", file));
}

std::string GroupClass(int group) { return absl::StrCat("sys/class/vfio/", group); }

// Absent if the group has no node: none of its members is on a vfio driver.
Result<std::optional<dev_t>> GroupNumber(const HostRoot& root, int group) {
  const std::string path = root.Path(absl::StrCat(GroupClass(group), "/dev"));
  const Result<std::string> text = Folder::ReadPath(path);
  if (absl::IsNotFound(text.status())) return std::nullopt;
  if (!text.ok()) return text.status();
  return ParseNumber(*text, path);
}

// Every node named in a folder of sys/class.
Status AddClass(const HostRoot& root, const char* name, std::set<dev_t>& numbers) {
  const Result<Folder> all = Folder::Open(root.Path(absl::StrCat("sys/class/", name)));
  if (absl::IsNotFound(all.status())) return OkStatus();  // the module is not loaded
  if (!all.ok()) return all.status();
  ASSIGN_OR_RETURN(const std::vector<std::string> nodes, all->List("."));
  for (const std::string& node : nodes) {
    ASSIGN_OR_RETURN(const std::optional<dev_t> number, ReadNumber(*all, node + "/dev"));
    if (number.has_value()) numbers.insert(*number);
  }
  return OkStatus();
}

// The cdevs of one function; none if it has vanished meanwhile.
Status AddCdevs(const HostRoot& root, const std::string& name, std::vector<dev_t>& numbers) {
  const Result<Folder> folder =
      Folder::Open(root.Path(absl::StrCat(kBusFolder, "/", name, "/vfio-dev")));
  if (absl::IsNotFound(folder.status())) return OkStatus();
  if (!folder.ok()) return folder.status();
  const Result<std::vector<std::string>> cdevs = folder->List(".");
  if (absl::IsNotFound(cdevs.status())) return OkStatus();
  if (!cdevs.ok()) return Annotate(cdevs.status(), folder->path());
  for (const std::string& cdev : *cdevs) {
    ASSIGN_OR_RETURN(const std::optional<dev_t> number, ReadNumber(*folder, cdev + "/dev"));
    if (number.has_value() && *number != 0) numbers.push_back(*number);
  }
  return OkStatus();
}

}  // namespace

Result<std::set<unsigned>> VfioMajors(const HostRoot& root) {
  const Result<std::string> text = ReadFile(root.Path("proc/devices"), kMaxDevices);
  if (absl::IsNotFound(text.status())) return std::set<unsigned>();
  if (!text.ok()) return text.status();
  std::set<unsigned> majors;
  for (const absl::string_view line : absl::StrSplit(*text, '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    unsigned number = 0;
    if (words.size() == 2 && (words[1] == "vfio" || words[1] == "vfio-dev") &&
        absl::SimpleAtoi(words[0], &number))
      majors.insert(number);
  }
  return majors;
}

Result<std::set<dev_t>> AllVfioNumbers(const HostRoot& root) {
  std::set<dev_t> numbers;
  RETURN_IF_ERROR(AddClass(root, "vfio", numbers));
  RETURN_IF_ERROR(AddClass(root, "vfio-dev", numbers));
  return numbers;
}

Result<DeviceNodes> ReadDeviceNodes(const HostRoot& root, const PciAddress& address) {
  DeviceNodes nodes = {.address = address, .numbers = {}};
  const std::string name = address.ToString();
  ASSIGN_OR_RETURN(const Folder folder,
                   Folder::Open(root.Path(absl::StrCat(kBusFolder, "/", name))));
  const Result<std::optional<int>> group = ReadIommuGroup(folder);
  if (!group.ok()) return Annotate(group.status(), folder.path());
  std::set<std::string> members = {name};
  if (group->has_value()) {
    ASSIGN_OR_RETURN(const std::optional<dev_t> number, GroupNumber(root, **group));
    if (number.has_value() && *number != 0) nodes.numbers.push_back(*number);
    members.merge(ListedInGroup(root, **group));
  }
  for (const std::string& member : members) RETURN_IF_ERROR(AddCdevs(root, member, nodes.numbers));
  return nodes;
}

Result<bool> GroupIsBusy(const HostRoot& root, int iommu_group) {
  const std::string path = root.Path(absl::StrCat("dev/vfio/", iommu_group));
  ASSIGN_OR_RETURN(const std::optional<dev_t> number, GroupNumber(root, iommu_group));
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0) {
    // Without the node there is nothing to open, and so no answer: not "nobody".
    if (errno == ENOENT && number.has_value())
      return absl::FailedPreconditionError(
          absl::StrCat(path, " is missing, though the group has a node (", major(*number), ":",
                       minor(*number), " by ", root.Path(GroupClass(iommu_group)),
                       "/dev); mount the host's /dev under paths.hostRoot"));
    return ErrnoError(errno, path);
  }
  if (!number.has_value() || info.st_rdev != *number)
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is device ", major(info.st_rdev), ":", minor(info.st_rdev), ", but ",
                     root.Path(GroupClass(iommu_group)), "/dev ",
                     number.has_value() ? absl::StrCat("says ", major(*number), ":", minor(*number))
                                        : std::string("is missing"),
                     "; mount the host's /dev under paths.hostRoot, not a copy"));
  const UniqueFd fd(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (fd.valid()) return false;
  if (errno == EBUSY) return true;
  const bool refused = errno == EPERM;  // by the device control group: it comes before the mode
  const Status failed = ErrnoError(errno, absl::StrCat("opening ", path));
  if (!refused) return failed;
  return absl::PermissionDeniedError(
      absl::StrCat(absl::string_view(failed.message()),
                   "; a container may open nodes of the host's only if it is privileged"));
}

Result<bool> DeviceIsBusy(const HostRoot& root, const PciAddress& address) {
  ASSIGN_OR_RETURN(
      const std::optional<int> group,
      ReadIommuGroup(root.Path(absl::StrCat(kBusFolder, "/", address.ToString(), "/iommu_group"))));
  if (!group.has_value()) return false;  // gone, or in no group
  Result<bool> busy = GroupIsBusy(root, *group);
  // Without a node nobody opens the group: its functions are on no vfio driver.
  if (absl::IsNotFound(busy.status())) return false;
  return busy;
}

}  // namespace switchyard::pci
