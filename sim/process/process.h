// SPDX-License-Identifier: Apache-2.0
#pragma once

// A program run beside the simulator (the agent), with its output line by line: a test or the demo
// waits for a line instead of sleeping. Killed and reaped by the destructor. Any thread, except
// that Stop and Kill are for one thread at a time.

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace switchyard::sim {

class Process {
 public:
  // arguments[0] is the executable. Standard output and error are read here; standard input is
  // /dev/null. Further environment as "NAME=value".
  [[nodiscard]] static Result<std::unique_ptr<Process>> Start(
      std::vector<std::string> arguments, std::vector<std::string> environment = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }

  // A line at or after the mark (see Mark) that contains `text`: waits for it, up to `timeout`.
  // Nothing if the time passed or the output ended without it.
  std::optional<std::string> WaitForLine(absl::string_view text, absl::Duration timeout);
  // From now on WaitForLine looks only at lines that come later.
  void Mark();

  // All output so far, the last 64 KiB of it.
  [[nodiscard]] std::string Output() const;

  // Waits for the program to end by itself; its exit code, 128 + signal, or nothing in time.
  std::optional<int> Wait(absl::Duration timeout);
  // SIGTERM, then Wait; SIGKILL if that is not enough (then nothing is returned).
  std::optional<int> Stop(absl::Duration timeout = absl::Seconds(20));
  void Kill();  // SIGKILL

 private:
  Process(pid_t pid, UniqueFd output);
  void ReadLines();

  pid_t pid_;
  UniqueFd output_;
  std::optional<int> exit_code_;
  mutable absl::Mutex mutex_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
  std::size_t mark_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // the output
  std::thread reader_;
};

}  // namespace switchyard::sim
