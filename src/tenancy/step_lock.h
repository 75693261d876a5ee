// SPDX-License-Identifier: Apache-2.0
#pragma once

// One step at a time, first come first served, with a bounded wait on the clock that is a
// parameter. Any thread.

#include <deque>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace switchyard::tenancy {

class StepLock {
 public:
  // False: not had within `timeout` (zero: not free now).
  [[nodiscard]] bool LockFor(Clock& clock, absl::Duration timeout);
  void Unlock();

 private:
  absl::Mutex mutex_;
  bool taken_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Wakeup*> waiting_ ABSL_GUARDED_BY(mutex_);  // at most one a thread
};

}  // namespace switchyard::tenancy
