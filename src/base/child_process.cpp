// SPDX-License-Identifier: Apache-2.0
#include "base/child_process.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace switchyard {
namespace {

constexpr int kKillPatienceMs = 5000;

}  // namespace

Result<ChildProcess> ChildProcess::Start(const Options& options) {
  std::vector<char*> argv;
  argv.reserve(options.arguments.size() + 1);
  for (const std::string& argument : options.arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);

  // The write end closes at a successful exec; otherwise errno comes through it.
  int report[2];
  if (::pipe2(report, O_CLOEXEC) != 0) return ErrnoError(errno, "pipe");
  UniqueFd read_end(report[0]);
  UniqueFd write_end(report[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return ErrnoError(errno, "fork");
  if (pid == 0) {
    // Only async-signal-safe calls from here to exec.
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    int failure = 0;
    if (options.inherit_as_3) {
      int out = report[1];
      if (out == 3) out = ::fcntl(out, F_DUPFD_CLOEXEC, 4);
      report[1] = out;
      const int from = *options.inherit_as_3;
      if (from == 3) {
        if (::fcntl(3, F_SETFD, 0) != 0) failure = errno;
      } else if (::dup2(from, 3) < 0) {
        failure = errno;
      }
    }
    if (failure == 0) {
      // Ours all have O_CLOEXEC; what we were started with may not (Linux 5.11; else only ours).
      (void)::close_range(options.inherit_as_3 ? 4 : 3, ~0U, CLOSE_RANGE_CLOEXEC);
      ::execvp(argv[0], argv.data());
      failure = errno;
    }
    (void)!::write(report[1], &failure, sizeof(failure));
    ::_exit(127);
  }
  write_end.reset();
  ChildProcess child(pid);
  int failure = 0;
  ssize_t got;
  do {
    got = ::read(read_end.get(), &failure, sizeof(failure));
  } while (got < 0 && errno == EINTR);
  if (got == sizeof(failure)) {
    return ErrnoError(failure, absl::StrCat("starting ", options.arguments[0]));
  }
  return child;
}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  if (this != &other) {
    Kill();
    pid_ = std::exchange(other.pid_, -1);
  }
  return *this;
}

ChildProcess::~ChildProcess() { Kill(); }

std::string ChildProcess::Kill() {
  if (pid_ < 0) return "not running";
  ::kill(pid_, SIGKILL);
  // A process that sits in the kernel, in a driver's call, ends when that returns.
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  pollfd ended{process.get(), POLLIN, 0};
  int ready;
  do {
    ready = ::poll(&ended, 1, kKillPatienceMs);
  } while (ready < 0 && errno == EINTR);
  if (ready == 0) {
    const pid_t abandoned = std::exchange(pid_, -1);
    return absl::StrCat("no end: process ", abandoned, " hangs in the kernel and was abandoned");
  }
  int status = 0;
  pid_t reaped;
  do {
    reaped = ::waitpid(pid_, &status, 0);
  } while (reaped < 0 && errno == EINTR);
  pid_ = -1;
  if (WIFEXITED(status)) return absl::StrCat("exit ", WEXITSTATUS(status));
  return absl::StrCat("signal ", WTERMSIG(status), " (", ::strsignal(WTERMSIG(status)), ")");
}

}  // namespace switchyard
