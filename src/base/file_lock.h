// SPDX-License-Identifier: Apache-2.0
#pragma once

// An exclusive flock(2) on a file: one owner a machine, gone with the process however it ends. The
// file holds the owner's PID for the message to the second one. Move-only; any thread.

#include <string>

#include "base/status.h"
#include "base/unique_fd.h"

namespace switchyard {

class FileLock {
 public:
  // kUnavailable if somebody else holds it; the message names the holder's PID and command.
  [[nodiscard]] static Result<FileLock> TryAcquire(const std::string& path);

 private:
  explicit FileLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace switchyard
