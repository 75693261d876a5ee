// SPDX-License-Identifier: Apache-2.0
#pragma once

// An exclusive flock(2) on a file: one owner a machine, gone with the process however it ends. The
// file says who the owner is (base/lock_owner.h), for the message to the second one. Move-only; any
// thread.

#include <string>

#include "base/status.h"
#include "base/unique_fd.h"

namespace switchyard {

class FileLock {
 public:
  // kUnavailable if somebody else holds it; the message names the holder.
  [[nodiscard]] static Result<FileLock> TryAcquire(const std::string& path);

 private:
  friend class FileLockWait;
  explicit FileLock(UniqueFd fd) : fd_(std::move(fd)) {}
  // Of a locked descriptor: writes who owns it.
  [[nodiscard]] static Result<FileLock> OfLocked(UniqueFd fd, const std::string& path);
  UniqueFd fd_;
};

}  // namespace switchyard
