// SPDX-License-Identifier: Apache-2.0
#pragma once

// SIGTERM or SIGINT as a wake-up call, while a start waits for something: the agent's main thread
// otherwise takes them with sigwait(2). Both must be blocked in every thread. While one of these
// lives it takes the signal.

#include <atomic>
#include <memory>

#include "base/clock.h"
#include "base/fd_watcher.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace switchyard::agent {

class StopSignal {
 public:
  [[nodiscard]] static Result<std::unique_ptr<StopSignal>> Make();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  [[nodiscard]] bool came() const { return came_; }
  [[nodiscard]] Wakeup& wakeup() { return wakeup_; }  // notified when it came

 private:
  explicit StopSignal(UniqueFd fd);

  std::atomic<bool> came_ = false;
  Wakeup wakeup_;
  UniqueFd fd_;
  FdWatcher watcher_;
};

}  // namespace switchyard::agent
