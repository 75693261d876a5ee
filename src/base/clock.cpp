// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <algorithm>

#include "absl/time/clock.h"

namespace switchyard {

void Wakeup::Notify() {
  absl::MutexLock lock(&mutex_);
  notified_ = true;
}

bool Wakeup::WaitFor(Clock& clock, absl::Duration timeout) { return clock.Wait(*this, timeout); }

absl::Time RealClock::Now() { return absl::Now(); }

absl::Duration RealClock::Monotonic() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return absl::DurationFromTimespec(now);
}

bool RealClock::Wait(Wakeup& wakeup, absl::Duration timeout) {
  absl::MutexLock lock(&wakeup.mutex_);
  const bool notified = wakeup.mutex_.AwaitWithTimeout(absl::Condition(&wakeup.notified_), timeout);
  wakeup.notified_ = false;
  return notified;
}

absl::Time SimClock::Now() { return start_ + Monotonic(); }

absl::Duration SimClock::Monotonic() { return absl::Nanoseconds(elapsed_ns_.load()); }

void SimClock::Advance(absl::Duration by) {
  absl::MutexLock lock(&mutex_);
  elapsed_ns_ += absl::ToInt64Nanoseconds(by);
  // Unlocking a waiter's mutex makes it look at its condition, and so at the time, again.
  for (Wakeup* wakeup : waiting_) absl::MutexLock poke(&wakeup->mutex_);
}

bool SimClock::Wait(Wakeup& wakeup, absl::Duration timeout) {
  const absl::Duration deadline = Monotonic() + timeout;
  {
    absl::MutexLock lock(&mutex_);
    waiting_.push_back(&wakeup);
  }
  bool notified;
  {
    absl::MutexLock lock(&wakeup.mutex_);
    const auto done = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      return wakeup.notified_ || Monotonic() >= deadline;
    };
    wakeup.mutex_.Await(absl::Condition(&done));
    notified = wakeup.notified_;
    wakeup.notified_ = false;
  }
  absl::MutexLock lock(&mutex_);
  waiting_.erase(std::find(waiting_.begin(), waiting_.end(), &wakeup));
  return notified;
}

}  // namespace switchyard
