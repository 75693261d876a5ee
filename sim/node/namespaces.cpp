// SPDX-License-Identifier: Apache-2.0
#include "sim/node/namespaces.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/unique_fd.h"

namespace switchyard::sim {
namespace {

namespace fs = std::filesystem;

// The sticky bit on a folder that only its owner writes to has no effect: it marks the mount points
// that a simulator made, so that the last one of several removes them.
constexpr mode_t kOurMode = 01755;

// Descriptors that say "in use" to RemoveMountPoints of another simulator; closed with the process.
std::vector<UniqueFd>& InUse() {
  static auto* fds = new std::vector<UniqueFd>();
  return *fds;
}

Status BringLoopbackUp() {
  const UniqueFd fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return ErrnoError(errno, "making a socket");
  ifreq request = {};
  std::strncpy(request.ifr_name, "lo", sizeof(request.ifr_name) - 1);
  if (ioctl(fd.get(), SIOCGIFFLAGS, &request) != 0) return ErrnoError(errno, "reading lo's flags");
  request.ifr_flags |= IFF_UP;
  if (ioctl(fd.get(), SIOCSIFFLAGS, &request) != 0) return ErrnoError(errno, "bringing lo up");
  return OkStatus();
}

}  // namespace

bool CanMakeNamespaces() {
  const pid_t child = fork();
  if (child == 0) _exit(unshare(CLONE_NEWNS | CLONE_NEWNET) == 0 ? 0 : 1);
  int status = 0;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::vector<BoundFolder> BoundFolders(const NodePaths& paths) {
  return {{paths.kubelet(), "/var/lib/kubelet"},
          {paths.state(), "/var/lib/switchyard"},
          {paths.fm(), "/run/nvidia-fabricmanager"},
          {paths.run(), "/run/switchyard"},
          {paths.cdi(), "/var/run/cdi"}};
}

Result<std::vector<std::string>> MakeMountPoints(const std::vector<BoundFolder>& folders) {
  std::vector<std::string> made;
  for (const BoundFolder& folder : folders) {
    fs::path path = "/";
    for (const fs::path& part : fs::path(folder.to).relative_path()) {
      path /= part;
      if (mkdir(path.c_str(), 0755) == 0) {
        (void)chmod(path.c_str(), kOurMode);
      } else if (errno != EEXIST) {
        return ErrnoError(errno, absl::StrCat("making ", path.string()));
      }
      struct stat status = {};
      if (stat(path.c_str(), &status) == 0 && status.st_mode == (S_IFDIR | kOurMode)) {
        made.push_back(path);
      }
    }
  }
  return made;
}

std::vector<std::string> RemoveMountPoints(const std::vector<std::string>& made) {
  std::vector<std::string> left;
  for (auto it = made.rbegin(); it != made.rend(); ++it) {
    // To remove a folder would end the mounts over it in every namespace.
    const UniqueFd fd(open(it->c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd.valid()) continue;
    if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0 || rmdir(it->c_str()) != 0) left.push_back(*it);
  }
  return left;
}

Status MountTmpfs(const std::string& folder) {
  if (mount("switchyard-sim", folder.c_str(), "tmpfs", MS_NOSUID, "mode=0755,size=64m") != 0) {
    return ErrnoError(errno, absl::StrCat("mounting a tmpfs on ", folder));
  }
  return OkStatus();
}

Status Unmount(const std::string& folder) {
  if (umount2(folder.c_str(), MNT_DETACH) != 0 && errno != EINVAL && errno != ENOENT) {
    return ErrnoError(errno, absl::StrCat("unmounting ", folder));
  }
  return OkStatus();
}

Status EnterNamespaces(const std::vector<BoundFolder>& folders) {
  for (const BoundFolder& folder : folders) {
    UniqueFd fd(open(folder.to.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd.valid()) return ErrnoError(errno, folder.to);
    (void)flock(fd.get(), LOCK_SH | LOCK_NB);  // a lock of somebody else's protects it as well
    InUse().push_back(std::move(fd));
  }
  if (unshare(CLONE_NEWNS | CLONE_NEWNET) != 0) return ErrnoError(errno, "making namespaces");
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return ErrnoError(errno, "making the mounts private");
  }
  for (const BoundFolder& folder : folders) {
    RETURN_IF_ERROR(MakeFolders(folder.from));
    if (mount(folder.from.c_str(), folder.to.c_str(), nullptr, MS_BIND, nullptr) != 0) {
      return ErrnoError(errno, absl::StrCat("binding ", folder.from, " to ", folder.to));
    }
  }
  return BringLoopbackUp();
}

Status JoinNamespaces(pid_t pid) {
  std::error_code error;
  const fs::path here = fs::current_path(error);
  for (const auto& [name, type] : {std::pair("net", CLONE_NEWNET), std::pair("mnt", CLONE_NEWNS)}) {
    const std::string path = absl::StrCat("/proc/", pid, "/ns/", name);
    const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.valid()) return ErrnoError(errno, path);
    if (setns(fd.get(), type) != 0) return ErrnoError(errno, absl::StrCat("joining ", path));
  }
  fs::current_path(here, error);
  if (error) return ErrnoError(error.value(), absl::StrCat("returning to ", here.string()));
  return OkStatus();
}

}  // namespace switchyard::sim
