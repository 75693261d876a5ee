// SPDX-License-Identifier: Apache-2.0
#pragma once

// "Something changed": how a caller waits for a condition over the kubelet's state without polling.
// Bump after the change is visible and without a lock held that a condition may take. Any thread.

#include <cstdint>
#include <functional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace switchyard::sim {

class Changes {
 public:
  void Bump() {
    absl::MutexLock lock(&mutex_);
    ++version_;
    changed_.SignalAll();
  }

  // Asks `done` now and after every Bump; false once `timeout` of real time has passed.
  bool WaitFor(const std::function<bool()>& done, absl::Duration timeout) {
    const absl::Time deadline = absl::Now() + timeout;
    std::uint64_t seen = version();
    while (!done()) {
      absl::MutexLock lock(&mutex_);
      while (version_ == seen) {
        if (changed_.WaitWithDeadline(&mutex_, deadline) && version_ == seen) return false;
      }
      seen = version_;
      if (absl::Now() >= deadline) return false;
    }
    return true;
  }

 private:
  std::uint64_t version() {
    absl::MutexLock lock(&mutex_);
    return version_;
  }

  absl::Mutex mutex_;
  absl::CondVar changed_;
  std::uint64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace switchyard::sim
