// SPDX-License-Identifier: Apache-2.0
#include "sim/node/lifecycle.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/unique_fd.h"
#include "sim/board/board.h"
#include "sim/node/namespaces.h"
#include "sim/node/record.h"

extern char** environ;

namespace switchyard::sim {
namespace {

namespace fs = std::filesystem;

constexpr int kReadyFd = 3;
// For the requests in progress, which wait for the agent's Allocate.
constexpr int kEndTimeoutMs = 15'000;

Status CheckFolderIsFree(const NodePaths& paths) {
  if (const auto pid = RunningSimulator(paths)) {
    return absl::AlreadyExistsError(absl::StrCat(paths.dir, ": process ", *pid,
                                                 " runs a simulated node there; end it with ",
                                                 "`switchyard-sim down --dir ", paths.dir, "`"));
  }
  if (ReadRecord(paths).ok()) {
    return absl::AlreadyExistsError(
        absl::StrCat(paths.dir, ": a simulator that was killed left its node there; remove it ",
                     "with `switchyard-sim down --dir ", paths.dir, "`"));
  }
  const Result<std::vector<std::string>> names = ListFolder(paths.dir);
  if (names.ok() && !names->empty()) {
    return absl::AlreadyExistsError(absl::StrCat(paths.dir, ": holds ", names->front(),
                                                 ", which is not the simulator's; take another "
                                                 "--dir"));
  }
  return OkStatus();
}

// Starts this program's hidden "daemon" command; `ready` becomes its descriptor 3.
Result<pid_t> SpawnDaemon(const NodePaths& paths, int ready) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, paths.log().c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                   0644);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  posix_spawn_file_actions_adddup2(&actions, ready, kReadyFd);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  std::string name = "switchyard-sim";
  std::string command = "daemon";
  std::string option = "--dir";
  std::string dir = paths.dir;
  char* arguments[] = {name.data(), command.data(), option.data(), dir.data(), nullptr};
  pid_t pid = 0;
  const int error = posix_spawn(&pid, "/proc/self/exe", &actions, &attributes, arguments, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return ErrnoError(error, "starting the simulator in the background");
  return pid;
}

// What the daemon says of itself before it closes the pipe.
std::string ReadToEnd(int fd) {
  std::string text;
  char buffer[4096];
  while (true) {
    const ssize_t n = read(fd, buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0 || text.size() > (64 << 10)) return text;
    text.append(buffer, n);
  }
}

Status StartDaemon(const NodePaths& paths) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoError(errno, "making a pipe");
  const UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  ASSIGN_OR_RETURN(const pid_t pid, SpawnDaemon(paths, theirs.get()));
  theirs.reset();
  const std::string said = ReadToEnd(ours.get());
  if (said == "ready") return OkStatus();
  int status = 0;
  waitpid(pid, &status, 0);
  if (!said.empty()) return absl::UnknownError(said);
  const Result<std::string> log = ReadFile(paths.log(), 1 << 20);
  return absl::UnknownError(
      absl::StrCat("the simulator ended while it started: ", log.ok() ? *log : ""));
}

Status MakeAndStart(const NodePaths& paths, Record& record) {
  RETURN_IF_ERROR(WriteRecord(paths, record));
  RETURN_IF_ERROR(MakeFolders(paths.host_root()));
  if (record.namespaces) {
    ASSIGN_OR_RETURN(record.made_folders, MakeMountPoints(BoundFolders(paths)));
    RETURN_IF_ERROR(WriteRecord(paths, record));
    RETURN_IF_ERROR(MountTmpfs(paths.host_root()));
  }
  return StartDaemon(paths);
}

// SIGTERM, and SIGKILL should that not be enough.
Status EndProcess(pid_t pid) {
  const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!process.valid()) {
    return errno == ESRCH ? OkStatus() : ErrnoError(errno, absl::StrCat("opening process ", pid));
  }
  for (const int signal : {SIGTERM, SIGKILL}) {
    if (kill(pid, signal) != 0 && errno != ESRCH) {
      return ErrnoError(errno, absl::StrCat("ending process ", pid));
    }
    pollfd ended = {.fd = process.get(), .events = POLLIN, .revents = 0};
    if (poll(&ended, 1, kEndTimeoutMs) == 1) return OkStatus();
  }
  return absl::DeadlineExceededError(absl::StrCat("process ", pid, " does not end"));
}

}  // namespace

Result<UpReport> Up(const NodePaths& paths, const UpOptions& options) {
  RETURN_IF_ERROR(CheckFolderIsFree(paths));
  Record record;
  // The daemon has another working folder to come from; and a bad board is said before anything is
  // made.
  record.board = fs::path(options.board).extension() == ".json"
                     ? fs::absolute(options.board).string()
                     : options.board;
  RETURN_IF_ERROR(LoadBoard(record.board, "", options.seed).status());
  record.driver = options.driver;
  record.seed = options.seed;
  record.iommufd = options.iommufd;
  record.namespaces = CanMakeNamespaces();
  RETURN_IF_ERROR(MakeFolders(paths.dir, 0700));
  if (const Status status = MakeAndStart(paths, record); !status.ok()) {
    (void)Down(paths);
    return status;
  }
  return UpReport{.namespaces = record.namespaces};
}

Result<DownReport> Down(const NodePaths& paths) {
  DownReport report;
  const Result<Record> record = ReadRecord(paths);
  if (!record.ok()) {
    const Result<std::vector<std::string>> names = ListFolder(paths.dir);
    if (!names.ok() || names->empty()) return report;
    return absl::FailedPreconditionError(
        absl::StrCat(paths.dir, ": not a simulated node (", record.status().message(), ")"));
  }
  report.found = true;
  if (const auto pid = RunningSimulator(paths)) {
    report.was_running = true;
    RETURN_IF_ERROR(EndProcess(*pid));
  }
  if (record->namespaces) {
    RETURN_IF_ERROR(Unmount(paths.host_root()));
    report.left = RemoveMountPoints(record->made_folders);
  }
  std::error_code error;
  fs::remove_all(paths.dir, error);
  if (error) return ErrnoError(error.value(), absl::StrCat("removing ", paths.dir));
  return report;
}

Status ExecInside(const NodePaths& paths, const std::vector<std::string>& command) {
  ASSIGN_OR_RETURN(const Record record, ReadRecord(paths));
  const auto pid = RunningSimulator(paths);
  if (!pid.has_value()) {
    return absl::UnavailableError(
        absl::StrCat(paths.dir, ": no simulator runs; start one with `switchyard-sim up`"));
  }
  if (record.namespaces) RETURN_IF_ERROR(JoinNamespaces(*pid));
  const char* before = getenv("LD_LIBRARY_PATH");
  const std::string search =
      before == nullptr || *before == '\0' ? paths.lib() : absl::StrCat(paths.lib(), ":", before);
  setenv("LD_LIBRARY_PATH", search.c_str(), 1);
  setenv("SWITCHYARD_PATHS_HOST_ROOT", paths.host_root().c_str(), 1);
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& argument : command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  return ErrnoError(errno, absl::StrCat("running ", command[0]));
}

}  // namespace switchyard::sim
