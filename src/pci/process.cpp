// SPDX-License-Identifier: Apache-2.0
#include "pci/process.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace switchyard::pci {
namespace {

// include/linux/proc_ns.h: the first PID namespace has this inode on every machine.
constexpr char kFirstPidNamespace[] = "pid:[4026531836]";
// include/linux/sched.h, as in the field "flags" of stat.
constexpr std::uint64_t kFlagExiting = 0x4;
constexpr std::uint64_t kFlagKernelThread = 0x200000;

constexpr size_t kMaxFile = 64 * 1024;

Result<std::string> LinkText(int at, const char* name) {
  char text[PATH_MAX];
  const ssize_t got = ::readlinkat(at, name, text, sizeof(text));
  if (got < 0) return ErrnoError(errno, name);
  return std::string(text, static_cast<size_t>(got));
}

}  // namespace

Result<Processes> Processes::OfHost(const HostRoot& root) {
  std::string path = root.Path("proc");
  UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return ErrnoError(errno, path);
  // A process of the first namespace is listed in that namespace's /proc only. Of itself everybody
  // may read this; of process 1, root with SYS_PTRACE.
  if (const Result<std::string> own = LinkText(folder.get(), "self/ns/pid");
      own.ok() && *own == kFirstPidNamespace)
    return Processes(std::move(path), std::move(folder));
  const Result<std::string> name = LinkText(folder.get(), "1/ns/pid");
  if (absl::IsPermissionDenied(name.status()))
    return absl::PermissionDeniedError(
        absl::StrCat(path,
                     "/1/ns/pid can't be read, so nobody can tell whose processes these are; "
                     "run as root, in a container with the capability SYS_PTRACE"));
  if (!name.ok())
    return absl::FailedPreconditionError(absl::StrCat(
        path, " shows no process 1 (", absl::string_view(name.status().message()),
        "); who holds a device is looked up there: mount the host's /proc under paths.hostRoot"));
  if (*name != kFirstPidNamespace)
    return absl::FailedPreconditionError(absl::StrCat(
        path, " shows the processes of a container only (process 1 is in ", *name, ", not in ",
        kFirstPidNamespace, "), and a device may be held by others; give the pod hostPID: true"));
  return Processes(std::move(path), std::move(folder));
}

pid_t Processes::Self() const {
  const Result<std::string> text = LinkText(folder(), "self");
  pid_t pid = 0;
  return text.ok() && absl::SimpleAtoi(*text, &pid) ? pid : 0;
}

Result<std::string> Processes::Read(pid_t pid, const std::string& name) const {
  const std::string relative = absl::StrCat(pid, "/", name);
  const UniqueFd fd(::openat(folder(), relative.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  char buffer[4096];
  while (fd.valid()) {
    const ssize_t got = ::read(fd.get(), buffer, sizeof(buffer));
    if (got < 0) break;
    if (got == 0) return text;
    text.append(buffer, static_cast<size_t>(got));
    if (text.size() > kMaxFile)
      return absl::OutOfRangeError(absl::StrCat(path_, "/", relative, ": longer than 64 KiB"));
  }
  if (errno == ESRCH) errno = ENOENT;  // gone between open and read
  return ErrnoError(errno, absl::StrCat(path_, "/", relative));
}

Result<ThreadState> ParseStat(absl::string_view stat) {
  // The command stands in parentheses and may hold any, spaces too.
  const size_t end = stat.rfind(')');
  const std::vector<absl::string_view> fields =
      end == absl::string_view::npos
          ? std::vector<absl::string_view>()
          : absl::StrSplit(stat.substr(end + 1), absl::ByAnyChar(" \n"), absl::SkipEmpty());
  std::uint64_t flags = 0;
  ThreadState state;
  // Fields 3 (state), 9 (flags) and 20 (num_threads) of proc(5).
  if (fields.size() < 18 || fields[0].size() != 1 || !absl::SimpleAtoi(fields[6], &flags) ||
      !absl::SimpleAtoi(fields[17], &state.threads)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", stat.substr(0, 100), "\" is no stat file of a process"));
  }
  state.kernel = (flags & kFlagKernelThread) != 0;
  state.exiting = (flags & kFlagExiting) != 0;
  state.over = fields[0] == "Z" || fields[0] == "X";
  return state;
}

std::string DeepestCgroup(absl::string_view cgroup) {
  absl::string_view deepest;
  std::ptrdiff_t parts = 0;
  for (const absl::string_view line : absl::StrSplit(cgroup, '\n')) {
    // "4:memory:/kubepods/x", "0::/x": a path may hold colons, the two fields before it none.
    const std::vector<absl::string_view> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3 || fields[2] == "/") continue;
    const std::ptrdiff_t its_parts = std::count(fields[2].begin(), fields[2].end(), '/');
    if (its_parts > parts) deepest = fields[2], parts = its_parts;
  }
  return std::string(deepest);
}

}  // namespace switchyard::pci
