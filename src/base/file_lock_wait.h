// SPDX-License-Identifier: Apache-2.0
#pragma once

// Waits for a FileLock that somebody else holds, without polling, and can be called off at any
// moment. flock(2) can't be called off in a thread, so a child process blocks in it on the same
// open file: what it locks is ours, and killing it ends the wait. The thread that calls Start must
// live as long as the wait: the child ends with it. One owner, which calls Take once.

#include <sys/types.h>

#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "base/file_lock.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace switchyard {

class FileLockWait {
 public:
  // `ended` runs once, on a thread of its own, when Take has an answer.
  [[nodiscard]] static Result<std::unique_ptr<FileLockWait>> Start(
      const std::string& path, absl::AnyInvocable<void()> ended);
  // Calls the wait off; a lock that was not taken is free again.
  ~FileLockWait();
  FileLockWait(const FileLockWait&) = delete;
  FileLockWait& operator=(const FileLockWait&) = delete;

  // After `ended`: the lock, or why there is none (kInternal: somebody killed the child).
  [[nodiscard]] Result<FileLock> Take();

 private:
  FileLockWait(std::string path, UniqueFd fd, pid_t child, absl::AnyInvocable<void()> ended);
  void Reap(absl::AnyInvocable<void()> ended);

  const std::string path_;
  UniqueFd fd_;
  const pid_t child_;
  absl::Mutex mutex_;
  bool reaped_ ABSL_GUARDED_BY(mutex_) = false;
  int status_ ABSL_GUARDED_BY(mutex_) = 0;  // of waitpid(2)
  std::thread thread_;
};

}  // namespace switchyard
