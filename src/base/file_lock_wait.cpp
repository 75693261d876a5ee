// SPDX-License-Identifier: Apache-2.0
#include "base/file_lock_wait.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"

namespace switchyard {
namespace {

// Only async-signal-safe calls: other threads of ours may hold any lock. Signals stay as blocked as
// in the parent, so that a SIGTERM to the whole group is the parent's matter.
[[noreturn]] void BlockInFlock(int fd, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(ECHILD);  // it died before that
  // Nothing else of the parent's may live as long as this one.
  if (fd > 3) (void)::close_range(3, static_cast<unsigned>(fd) - 1, 0);
  (void)::close_range(static_cast<unsigned>(fd) + 1, ~0U, 0);
  while (::flock(fd, LOCK_EX) != 0) {
    if (errno != EINTR) ::_exit(errno);
  }
  ::_exit(0);
}

}  // namespace

Result<std::unique_ptr<FileLockWait>> FileLockWait::Start(const std::string& path,
                                                          absl::AnyInvocable<void()> ended) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.valid()) return ErrnoError(errno, path);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return ErrnoError(errno, absl::StrCat("waiting for ", path, ": fork"));
  if (child == 0) BlockInFlock(fd.get(), parent);
  return std::unique_ptr<FileLockWait>(
      new FileLockWait(path, std::move(fd), child, std::move(ended)));
}

FileLockWait::FileLockWait(std::string path, UniqueFd fd, pid_t child,
                           absl::AnyInvocable<void()> ended)
    : path_(std::move(path)),
      fd_(std::move(fd)),
      child_(child),
      thread_([this, ended = std::move(ended)]() mutable { Reap(std::move(ended)); }) {}

FileLockWait::~FileLockWait() {
  {
    absl::MutexLock lock(&mutex_);
    if (!reaped_) ::kill(child_, SIGKILL);
  }
  thread_.join();
}

void FileLockWait::Reap(absl::AnyInvocable<void()> ended) {
  pthread_setname_np(pthread_self(), "lock-wait");
  siginfo_t info;
  // Left a zombie until the mutex is held: the destructor must not kill a PID that is somebody
  // else's by then.
  while (::waitid(P_PID, static_cast<id_t>(child_), &info, WEXITED | WNOWAIT) != 0 &&
         errno == EINTR) {
  }
  {
    absl::MutexLock lock(&mutex_);
    ::waitpid(child_, &status_, 0);
    reaped_ = true;
  }
  ended();
}

Result<FileLock> FileLockWait::Take() {
  int status = 0;
  {
    absl::MutexLock lock(&mutex_);
    if (!reaped_) return absl::FailedPreconditionError(absl::StrCat(path_, ": still waiting"));
    status = status_;
  }
  if (WIFSIGNALED(status)) {
    return absl::InternalError(absl::StrCat("waiting for ", path_, ": signal ", WTERMSIG(status),
                                            " ended the process that waited"));
  }
  if (WEXITSTATUS(status) != 0) {
    return ErrnoError(WEXITSTATUS(status), absl::StrCat("waiting for ", path_));
  }
  return FileLock::OfLocked(std::move(fd_), path_);
}

}  // namespace switchyard
