// SPDX-License-Identifier: Apache-2.0
#pragma once

// A child process that is killed and reaped by its owner's destructor. Should the owner die without
// one, the child must notice by itself, for instance that descriptor 3 was closed at the other end
// (PR_SET_PDEATHSIG would tie it to the thread that forked). Move-only; one thread at a time.

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace switchyard {

class ChildProcess {
 public:
  struct Options {
    std::vector<std::string> arguments;  // arguments[0] is the executable, searched in PATH
    std::optional<int> inherit_as_3;     // this descriptor becomes the child's descriptor 3
  };

  // Standard streams are inherited, every other descriptor is closed at exec. Returns once exec
  // succeeded; kNotFound or what errno says otherwise.
  [[nodiscard]] static Result<ChildProcess> Start(const Options& options);

  ChildProcess(ChildProcess&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();

  [[nodiscard]] pid_t pid() const { return pid_; }
  // SIGKILL and reap; returns how it ended: "exit 3", "signal 9 (Killed)". One that does not end
  // within 5 s sits in the kernel: it is abandoned, and the answer says so.
  std::string Kill();

 private:
  explicit ChildProcess(pid_t pid) : pid_(pid) {}
  pid_t pid_ = -1;
};

}  // namespace switchyard
