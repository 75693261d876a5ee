// SPDX-License-Identifier: Apache-2.0
#include "sim/sysfs/processes.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "sim/sysfs/paths.h"

namespace switchyard::sim {
namespace {

// TASK_COMM_LEN of the kernel, without the zero at its end.
constexpr size_t kMaxCommand = 15;

std::string Folder(pid_t pid) { return absl::StrCat("proc/", pid); }

// Links whose text is no path below the root: "pid:[4026531836]".
Status Text(const FolderEdit& edit, const std::string& path, const std::string& text) {
  if (symlink(text.c_str(), edit.Path(path).c_str()) == 0) return OkStatus();
  return ErrnoError(errno, absl::StrCat("making ", edit.Path(path)));
}

Status CheckSpec(const HolderSpec& spec) {
  const auto printable = [](unsigned char c) { return absl::ascii_isgraph(c); };
  if (spec.command.empty() || spec.command.size() > kMaxCommand ||
      !std::all_of(spec.command.begin(), spec.command.end(), printable))
    return absl::InvalidArgumentError(absl::StrCat("command \"", spec.command, "\": 1 to ",
                                                   kMaxCommand, " printable characters, no space"));
  if (!std::all_of(spec.pod_uid.begin(), spec.pod_uid.end(),
                   [](unsigned char c) { return absl::ascii_isalnum(c) || c == '-'; }))
    return absl::InvalidArgumentError(
        absl::StrCat("pod \"", spec.pod_uid, "\": a UID, of letters, digits and -"));
  return OkStatus();
}

}  // namespace

Result<Processes> Processes::Create(const std::string& root) {
  Processes processes(root);
  FolderEdit& edit = processes.edit_;
  RETURN_IF_ERROR(edit.Folder("proc/1/ns"));
  RETURN_IF_ERROR(edit.Folder("proc/1/fd"));
  // The inode of the first PID namespace, the same on every machine (include/linux/proc_ns.h).
  RETURN_IF_ERROR(Text(edit, "proc/1/ns/pid", "pid:[4026531836]"));
  RETURN_IF_ERROR(edit.Write("proc/1/comm", "systemd\n"));
  RETURN_IF_ERROR(edit.Write("proc/1/stat",
                             "1 (systemd) S 0 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0\n"));
  return processes;
}

Result<pid_t> Processes::Hold(const PciAddress& address, const std::vector<std::string>& nodes,
                              const HolderSpec& spec) {
  RETURN_IF_ERROR(CheckSpec(spec));
  const pid_t pid = next_pid_++;
  const std::string folder = Folder(pid);
  // All of it before the process shows: its fd folder comes last.
  RETURN_IF_ERROR(edit_.Folder(folder + "/fdinfo"));
  RETURN_IF_ERROR(edit_.Write(folder + "/comm", spec.command + "\n"));
  RETURN_IF_ERROR(edit_.Write(folder + "/cgroup", spec.pod_uid.empty()
                                                      ? std::string("0::/user.slice\n")
                                                      : absl::StrCat("0::/kubepods/burstable/pod",
                                                                     spec.pod_uid, "/compute\n")));
  RETURN_IF_ERROR(edit_.Write(folder + "/stat",
                              absl::StrCat(pid, " (", spec.command, ") S 1 ", pid, " ", pid,
                                           " 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 100 0 0\n")));
  int fd = 10;
  RETURN_IF_ERROR(edit_.Folder(folder + "/filling"));
  for (const std::string& node : nodes) {
    RETURN_IF_ERROR(Text(edit_, absl::StrCat(folder, "/filling/", fd++), edit_.Path(node)));
  }
  RETURN_IF_ERROR(Text(edit_, absl::StrCat(folder, "/filling/", fd), "anon_inode:[vfio-device]"));
  RETURN_IF_ERROR(
      edit_.Write(absl::StrCat(folder, "/fdinfo/", fd),
                  absl::StrCat("pos:\t0\nvfio-device-syspath: /sys", DevPath(address), "\n")));
  const std::string from = edit_.Path(folder + "/filling");
  const std::string to = edit_.Path(folder + "/fd");
  if (rename(from.c_str(), to.c_str()) != 0) return ErrnoError(errno, to);
  holders_[pid] = address;
  return pid;
}

Result<int> Processes::Release(const PciAddress& address) {
  int count = 0;
  for (auto it = holders_.begin(); it != holders_.end();) {
    if (it->second != address) {
      ++it;
      continue;
    }
    // What a process that ends loses first.
    RETURN_IF_ERROR(edit_.Remove(Folder(it->first) + "/fd"));
    RETURN_IF_ERROR(edit_.Remove(Folder(it->first)));
    it = holders_.erase(it);
    ++count;
  }
  return count;
}

Status Processes::ReleaseAll() {
  while (!holders_.empty()) {
    RETURN_IF_ERROR(Release(PciAddress(holders_.begin()->second)).status());
  }
  return OkStatus();
}

}  // namespace switchyard::sim
