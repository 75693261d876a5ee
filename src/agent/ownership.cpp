// SPDX-License-Identifier: Apache-2.0
#include "agent/ownership.h"

#include <algorithm>
#include <atomic>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/file_lock_wait.h"
#include "base/lock_owner.h"

namespace switchyard::agent {
namespace {

Event WaitingFor(const std::string& lock_path, absl::Duration waited) {
  const Result<LockOwner> owner = ReadLockOwner(lock_path);
  return {
      "lock_waiting",
      Severity::kInfo,
      absl::StrCat(lock_path, " is held by ", owner.ok() ? owner->Describe() : "another process",
                   ": waiting until it ends; nothing is offered to kubelet before"),
      {{"waited", absl::FormatDuration(absl::Trunc(waited, absl::Seconds(1)))}}};
}

}  // namespace

Result<FileLock> WaitForOwnership(const std::string& lock_path, absl::Duration patience,
                                  const OwnershipParts& parts) {
  const absl::Duration start = parts.clock->Monotonic();
  parts.events->Report(WaitingFor(lock_path, absl::ZeroDuration()));
  absl::Duration say_again = kSayAgain;
  std::atomic<bool> ended = false;  // outlives the wait, which sets it
  ASSIGN_OR_RETURN(const std::unique_ptr<FileLockWait> wait, FileLockWait::Start(lock_path, [&] {
                     ended = true;
                     parts.wakeup->Notify();
                   }));
  while (true) {
    const absl::Duration waited = parts.clock->Monotonic() - start;
    if (parts.stopped()) {
      return absl::CancelledError(absl::StrCat("stopped while waiting for ", lock_path));
    }
    if (ended) {
      ASSIGN_OR_RETURN(FileLock lock, wait->Take());
      parts.events->Report(
          {"lock_taken",
           Severity::kInfo,
           absl::StrCat(lock_path, " is free: this agent is the node's now"),
           {{"waited", absl::FormatDuration(absl::Trunc(waited, absl::Milliseconds(1)))}}});
      return lock;
    }
    if (waited >= patience) {
      const Result<LockOwner> owner = ReadLockOwner(lock_path);
      return absl::DeadlineExceededError(absl::StrCat(
          lock_path, " is still held by ", owner.ok() ? owner->Describe() : "another process",
          " after ", absl::FormatDuration(patience), ": stop that one, or wait longer"));
    }
    if (waited >= say_again) {
      parts.events->Report(WaitingFor(lock_path, waited));
      while (say_again <= waited) say_again += kSayAgain;
    }
    parts.wakeup->WaitFor(*parts.clock, std::min(patience, say_again) - waited);
  }
}

}  // namespace switchyard::agent
