// SPDX-License-Identifier: Apache-2.0
#include "pci/holders.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <optional>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/unique_fd.h"
#include "pci/folder_names.h"
#include "pci/process.h"
#include "pci/vfio_nodes.h"

namespace switchyard::pci {
namespace {

// vfio_device_open_file() in the kernel's drivers/vfio/group.c.
constexpr char kAnonymousDevice[] = "anon_inode:[vfio-device]";
// Documentation/filesystems/proc.rst, "VFIO Device files".
constexpr char kSyspath[] = "vfio-device-syspath:";

bool IsGone(int error) { return error == ENOENT || error == ESRCH; }
bool IsRefused(int error) { return error == EACCES || error == EPERM; }

// What one process has open. Each file's text once: a VM's monitor has many of a kind.
struct OpenFiles {
  size_t read = 0;        // files whose text was read
  size_t vanished = 0;    // closed between listing and reading
  std::string problem;    // they, or one of them, can't be told
  std::string unclear;    // the text of that one
  bool refused = false;   // so will be the next
  bool has_node = false;  // a group or cdev of any device
  std::map<PciAddress, std::set<std::string>> of;
  std::set<std::string> anonymous;  // whose device the kernel does not say
  std::set<std::string> nobodys;    // vfio nodes that sysfs does not have
};

class Look {
 public:
  Look(const HostRoot& root, const Processes& processes, std::span<const DeviceNodes> devices)
      : root_(root), processes_(processes) {
    for (const DeviceNodes& device : devices) {
      asked_.insert(device.address);
      for (const dev_t number : device.numbers) by_number_[number].insert(device.address);
    }
  }

  Result<Holders> All() {
    ASSIGN_OR_RETURN(majors_, VfioMajors(root_));
    const pid_t self = processes_.Self();
    Status failed;
    const int error = ForEachName(processes_.folder(), [&](const char* name) {
      pid_t pid = 0;
      if (!absl::SimpleAtoi(name, &pid) || pid == self) return true;
      failed = Process(pid);
      return failed.ok();
    });
    if (error != 0) return ErrnoError(error, processes_.path());
    RETURN_IF_ERROR(failed);
    return std::move(holders_);
  }

 private:
  Status Process(pid_t pid) {
    OpenFiles files;
    RETURN_IF_ERROR(ReadFiles(pid, absl::StrCat(pid, "/"), files));
    if (files.problem.empty() && (files.read == 0 || files.vanished != 0))
      RETURN_IF_ERROR(LookCloser(pid, files));
    return Note(pid, files);
  }

  // Fails only for want of something of our own, such as descriptors.
  Status ReadFiles(pid_t pid, const std::string& task, OpenFiles& files) {
    const std::string path = task + "fd";
    const UniqueFd folder(
        ::openat(processes_.folder(), path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    Status failed;
    const int error = !folder.valid() ? errno : ForEachName(folder.get(), [&](const char* name) {
      failed = File(pid, task, folder.get(), name, files);
      return failed.ok() && !files.refused;
    });
    RETURN_IF_ERROR(failed);
    if (error == 0 || IsGone(error)) return OkStatus();
    if (!IsRefused(error)) return ErrnoError(error, absl::StrCat(processes_.path(), "/", path));
    files.problem = absl::StrCat("its files can't be listed: ",
                                 absl::string_view(ErrnoError(error, path).message()));
    return OkStatus();
  }

  Status File(pid_t pid, const std::string& task, int folder, const char* name, OpenFiles& files) {
    char buffer[PATH_MAX];
    const ssize_t length = ::readlinkat(folder, name, buffer, sizeof(buffer));
    if (length < 0) return CantTell(errno, absl::StrCat(task, "fd/", name), "", files);
    ++files.read;
    const absl::string_view text(buffer, static_cast<size_t>(length));
    // These file systems of the kernel's own hold no device nodes. All else is looked at.
    if (absl::StartsWith(text, "socket:[") || absl::StartsWith(text, "pipe:[")) return OkStatus();
    if (absl::StartsWith(text, "anon_inode:")) {
      if (text == kAnonymousDevice) Anonymous(pid, task, name, files);
      return OkStatus();
    }
    // The type is in memory: without AT_STATX_DONT_SYNC a dead file server would hang us here.
    struct statx info = {};
    if (::statx(folder, name, AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC, STATX_TYPE, &info) != 0)
      return CantTell(errno, absl::StrCat(task, "fd/", name), text, files);
    if (!S_ISCHR(info.stx_mode)) return OkStatus();
    return Node(makedev(info.stx_rdev_major, info.stx_rdev_minor), text, files);
  }

  Status CantTell(int error, const std::string& path, absl::string_view text, OpenFiles& files) {
    if (IsGone(error)) {
      ++files.vanished;
      return OkStatus();
    }
    const Status status = ErrnoError(error, absl::StrCat(processes_.path(), "/", path));
    if (error == ENOMEM) return status;
    files.problem = absl::StrCat(
        IsRefused(error) ? "its files may not be read: " : "nobody can tell what file this is: ",
        absl::string_view(status.message()));
    files.unclear = std::string(text);
    files.refused = IsRefused(error);
    return OkStatus();
  }

  Status Node(dev_t number, absl::string_view text, OpenFiles& files) {
    const auto it = by_number_.find(number);
    if (it != by_number_.end()) {
      files.has_node = true;
      for (const PciAddress& address : it->second) files.of[address].emplace(text);
      return OkStatus();
    }
    if (!majors_.contains(major(number))) return OkStatus();
    if (!all_numbers_.has_value()) {
      ASSIGN_OR_RETURN(all_numbers_, AllVfioNumbers(root_));
    }
    if (all_numbers_->contains(number)) {
      files.has_node = true;  // of a device that was not asked for
    } else {
      files.nobodys.emplace(text);
    }
    return OkStatus();
  }

  void Anonymous(pid_t pid, const std::string& task, const char* name, OpenFiles& files) {
    const std::string info = absl::StrCat(task.substr(task.find('/') + 1), "fdinfo/", name);
    const Result<std::string> text = processes_.Read(pid, info);
    for (absl::string_view line :
         absl::StrSplit(text.ok() ? *text : std::string(), '\n', absl::SkipEmpty())) {
      if (!absl::ConsumePrefix(&line, kSyspath)) continue;
      line = absl::StripAsciiWhitespace(line);
      const Result<PciAddress> address = PciAddress::Parse(line.substr(line.rfind('/') + 1));
      if (!address.ok()) continue;
      if (asked_.contains(*address)) files.of[*address].emplace(kAnonymousDevice);
      return;
    }
    files.anonymous.emplace(kAnonymousDevice);
  }

  // The process shows no files, or some closed just now. A process that exits shows none from the
  // moment on when it begins to close them, and a VM's monitor then has its devices for a second
  // or longer. Its first thread may also have ended before the others, which have the files.
  Status LookCloser(pid_t pid, OpenFiles& files) {
    bool exiting = false;
    int threads = 0;
    RETURN_IF_ERROR(ReadState(pid, "", files, exiting, threads));
    if (threads > 1 && files.read == 0) {
      const std::string path = absl::StrCat(pid, "/task");
      const UniqueFd folder(
          ::openat(processes_.folder(), path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      Status failed;
      const int error = !folder.valid() ? errno : ForEachName(folder.get(), [&](const char* tid) {
        failed = ReadFiles(pid, absl::StrCat(path, "/", tid, "/"), files);
        if (failed.ok() && files.read == 0)
          failed = ReadState(pid, absl::StrCat("task/", tid, "/"), files, exiting, threads);
        return failed.ok() && files.read == 0 && files.problem.empty();
      });
      RETURN_IF_ERROR(failed);
      if (error != 0 && !IsGone(error))
        return ErrnoError(error, absl::StrCat(processes_.path(), "/", path));
    }
    if (exiting && files.problem.empty()) files.problem = "it is exiting and closes its files";
    return OkStatus();
  }

  Status ReadState(pid_t pid, const std::string& task, OpenFiles& files, bool& exiting,
                   int& threads) {
    const Result<std::string> text = processes_.Read(pid, task + "stat");
    if (absl::IsNotFound(text.status())) return OkStatus();
    if (!text.ok()) return text.status();
    const Result<ThreadState> state = ParseStat(*text);
    if (!state.ok()) {
      files.problem = std::string(state.status().message());
      return OkStatus();
    }
    if (state->kernel) return OkStatus();
    exiting = exiting || (state->exiting && !state->over);
    threads = std::max(threads, state->threads);
    return OkStatus();
  }

  // Puts it down for the devices. Left out if the process is gone now: then it holds nothing.
  Status Note(pid_t pid, const OpenFiles& files) {
    const bool silent = files.of.empty() && files.anonymous.empty() && files.nobodys.empty();
    if (silent && files.problem.empty()) return OkStatus();
    const Result<std::string> command = processes_.Read(pid, "comm");
    if (absl::IsNotFound(command.status())) return OkStatus();
    const Result<std::string> cgroup = processes_.Read(pid, "cgroup");
    Holder holder;
    holder.pid = pid;
    if (command.ok()) holder.command = std::string(absl::StripAsciiWhitespace(*command));
    if (cgroup.ok()) holder.cgroup = DeepestCgroup(*cgroup);

    const auto with = [&holder](std::string file) {
      holder.file = std::move(file);
      return holder;
    };
    for (const auto& [address, its_files] : files.of) {
      for (const std::string& file : its_files) holders_.of[address].push_back(with(file));
    }
    for (const std::string& file : files.nobodys) holders_.anyones.push_back(with(file));
    for (const std::string& file : files.anonymous) {
      if (!files.has_node) holders_.anyones.push_back(with(file));
      for (const auto& [address, its_files] : files.of)
        if (files.has_node) holders_.of[address].push_back(with(file));
    }
    if (files.problem.empty()) return OkStatus();
    holder.problem = files.problem;
    holders_.unreadable.push_back(with(files.unclear));
    return OkStatus();
  }

  const HostRoot& root_;
  const Processes& processes_;
  std::map<dev_t, std::set<PciAddress>> by_number_;
  std::set<PciAddress> asked_;
  std::set<unsigned> majors_;
  std::optional<std::set<dev_t>> all_numbers_;  // read when first needed
  Holders holders_;
};

}  // namespace

bool Holders::MayHold(const PciAddress& address) const {
  return !anyones.empty() || !unreadable.empty() || of.contains(address);
}

Result<Holders> FindHolders(const HostRoot& root, std::span<const DeviceNodes> devices) {
  ASSIGN_OR_RETURN(const Processes processes, Processes::OfHost(root));
  return Look(root, processes, devices).All();
}

}  // namespace switchyard::pci
