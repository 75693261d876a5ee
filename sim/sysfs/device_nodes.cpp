// SPDX-License-Identifier: Apache-2.0
#include "sim/sysfs/device_nodes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/unique_fd.h"

namespace switchyard::sim {

const std::vector<DeviceNodes::Kind>& DeviceNodes::AllKinds() {
  static const std::vector<Kind> kinds = {{S_IFCHR, 7, 0, 1},     {S_IFCHR, 7, 64, 65},
                                          {S_IFCHR, 7, 128, 129}, {S_IFCHR, 203, 0, 1},
                                          {S_IFCHR, 4, 20, 63},   {S_IFBLK, 7, 0, 63}};
  return kinds;
}

DeviceNodes::DeviceNodes(std::string root) : root_(std::move(root)) {
  for (const Kind& kind : AllKinds()) {
    if (Opens(kind)) kinds_.push_back(kind);
  }
}

bool DeviceNodes::Opens(const Kind& kind) const {
  const std::string path = absl::StrCat(root_, "/.node-that-opens");
  for (const unsigned minor : {kind.first_minor, kind.last_minor}) {
    if (mknod(path.c_str(), kind.type | 0600, makedev(kind.major, minor)) != 0) return false;
    const UniqueFd fd(open(path.c_str(), O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
    unlink(path.c_str());
    if (!fd.valid()) return false;
  }
  return true;
}

Result<std::pair<DeviceNodes::Kind, DeviceNodes::Number>> DeviceNodes::FreeNumber() const {
  std::set<Number> taken;
  for (const auto& [path, number] : used_) taken.insert(number);
  for (const Kind& kind : real() ? kinds_ : AllKinds()) {
    for (unsigned minor = kind.first_minor; minor <= kind.last_minor; ++minor) {
      if (!taken.contains({kind.major, minor})) return std::pair(kind, Number(kind.major, minor));
    }
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("no device number is left: ", used_.size(), " nodes are in use"));
}

Result<std::string> DeviceNodes::Make(const std::string& path, unsigned mode) {
  ASSIGN_OR_RETURN(const auto free, FreeNumber());
  const auto& [kind, number] = free;
  const std::string full = absl::StrCat(root_, "/", path);
  RETURN_IF_ERROR(MakeFolders(full.substr(0, full.rfind('/'))));
  if (real()) {
    if (mknod(full.c_str(), kind.type | mode, makedev(number.first, number.second)) != 0) {
      return ErrnoError(errno, absl::StrCat("making the device node ", full));
    }
  } else {
    const UniqueFd fd(open(full.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, mode));
    if (!fd.valid()) return ErrnoError(errno, absl::StrCat("making ", full));
  }
  used_[path] = number;
  if (!real()) return std::string("0:0\n");
  return absl::StrCat(number.first, ":", number.second, "\n");
}

Status DeviceNodes::Remove(const std::string& path) {
  used_.erase(path);
  const std::string full = absl::StrCat(root_, "/", path);
  if (unlink(full.c_str()) != 0 && errno != ENOENT) return ErrnoError(errno, full);
  return OkStatus();
}

}  // namespace switchyard::sim
