// SPDX-License-Identifier: Apache-2.0
#pragma once

// A thread that calls back whenever a descriptor is readable (a uevent socket, inotify). The
// callback must read it; it runs on that thread only. The destructor ends the thread.

#include <string>
#include <thread>

#include "absl/functional/any_invocable.h"
#include "base/unique_fd.h"

namespace switchyard {

class FdWatcher {
 public:
  using Callback = absl::AnyInvocable<void()>;

  // `fd` is borrowed and must outlive the watcher.
  FdWatcher(std::string name, int fd, Callback readable);
  ~FdWatcher();
  FdWatcher(const FdWatcher&) = delete;
  FdWatcher& operator=(const FdWatcher&) = delete;

  // False: the kernel gave no thread (its limit of PIDs) or no descriptor, and nothing calls back.
  [[nodiscard]] bool watches() const { return thread_.joinable(); }

 private:
  void Run(int fd);

  UniqueFd stop_;  // eventfd
  Callback readable_;
  std::thread thread_;
};

}  // namespace switchyard
