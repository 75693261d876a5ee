// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests of who holds a device: real child processes that hold files, and planted ones in a
// tree's proc/. Any user may run them: the "device nodes" are /dev/full and the like, which differ
// by number and open everywhere. Header-only. One thread at a time.

#include <linux/capability.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "pci/testing/tree.h"

namespace switchyard::pci::testing {

// Runs `begin` in a process of its own, which then stays as it is until End.
class Child {
 public:
  explicit Child(const std::function<void()>& begin) {
    int ready[2];
    if (::pipe(ready) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      begin();
      if (::write(ready[1], "x", 1) != 1) ::_exit(1);
      while (true) ::pause();
    }
    ::close(ready[1]);
    char byte = 0;
    if (::read(ready[0], &byte, 1) != 1) std::abort();
    ::close(ready[0]);
  }
  ~Child() { End(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }

  // Killed, and all its files closed; not yet reaped.
  void EndAsZombie() {
    ::kill(pid_, SIGKILL);
    siginfo_t info = {};
    ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
  }
  void End() {
    if (pid_ == 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
};

// This thread without root's powers over other users' files, until the end of the block.
class NoCapabilities {
 public:
  NoCapabilities() {
    Get();
    __user_cap_data_struct none[2] = {data_[0], data_[1]};
    none[0].effective = none[1].effective = 0;
    Set(none);
  }
  ~NoCapabilities() { Set(data_); }
  NoCapabilities(const NoCapabilities&) = delete;
  NoCapabilities& operator=(const NoCapabilities&) = delete;

 private:
  void Get() {
    if (::syscall(SYS_capget, &header_, data_) != 0) std::abort();
  }
  void Set(const __user_cap_data_struct* data) {
    if (::syscall(SYS_capset, &header_, data) != 0) std::abort();
  }
  __user_cap_header_struct header_ = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data_[2] = {};
};

// A tree's proc/, as the host's: process 1 is in the first PID namespace.
class FakeProc {
 public:
  explicit FakeProc(SysfsTree& tree) : tree_(tree) {
    tree_.Link("proc/1/ns/pid", "pid:[4026531836]");
  }

  // The real process, as it is at each look.
  void Show(pid_t pid) { tree_.Link(absl::StrCat("proc/", pid), absl::StrCat("/proc/", pid)); }

  // A planted one. `flags` and `state` as in its stat file.
  void Plant(pid_t pid, const std::string& command, char state = 'S', unsigned flags = 0x400000,
             int threads = 1) {
    Write(pid, "comm", command + "\n");
    Write(pid, "cgroup", absl::StrCat("0::/of/", command, "\n"));
    PlantState(absl::StrCat(pid, "/"), command, state, flags, threads);
  }
  void PlantThread(pid_t pid, pid_t tid, char state, unsigned flags) {
    PlantState(absl::StrCat(pid, "/task/", tid, "/"), "worker", state, flags, 2);
  }
  void Open(pid_t pid, int fd, const std::string& text, const std::string& info = "pos:\t0\n") {
    OpenOf(absl::StrCat(pid, "/"), fd, text, info);
  }
  // `task`: "7/" or "7/task/8/".
  void OpenOf(const std::string& task, int fd, const std::string& text, const std::string& info) {
    tree_.Link(absl::StrCat("proc/", task, "fd/", fd), text);
    tree_.Write(absl::StrCat("proc/", task, "fdinfo/", fd), info);
  }
  void Write(pid_t pid, const std::string& name, const std::string& content) {
    tree_.Write(absl::StrCat("proc/", pid, "/", name), content);
  }

 private:
  void PlantState(const std::string& task, const std::string& command, char state, unsigned flags,
                  int threads) {
    std::filesystem::create_directories(tree_.Path(absl::StrCat("proc/", task, "fd")));
    tree_.Write(absl::StrCat("proc/", task, "stat"),
                absl::StrCat("7 (", command, ") ", std::string(1, state), " 1 7 7 0 -1 ", flags,
                             " 0 0 0 0 0 0 0 0 20 0 ", threads, " 0 100 0 0\n"));
  }

  SysfsTree& tree_;
};

}  // namespace switchyard::pci::testing
