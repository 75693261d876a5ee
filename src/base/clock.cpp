// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"

namespace switchyard {

void Wakeup::Notify() {
  const std::lock_guard lock(mutex_);
  notified_ = true;
  changed_.notify_all();
}

bool Wakeup::WaitFor(Clock& clock, absl::Duration timeout) { return clock.Wait(*this, timeout); }

absl::Time RealClock::Now() { return absl::Now(); }

absl::Duration RealClock::Monotonic() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return absl::DurationFromTimespec(now);
}

bool RealClock::Wait(Wakeup& wakeup, absl::Duration timeout) {
  constexpr absl::Duration kForEver = absl::Hours(24 * 365);  // far from chrono's overflow
  std::unique_lock lock(wakeup.mutex_);
  const auto notified = [&] { return wakeup.notified_; };
  if (timeout > kForEver) {
    wakeup.changed_.wait(lock, notified);
  } else {
    wakeup.changed_.wait_for(lock, absl::ToChronoNanoseconds(timeout), notified);
  }
  return std::exchange(wakeup.notified_, false);
}

absl::Time SimClock::Now() { return start_ + Monotonic(); }

absl::Duration SimClock::Monotonic() { return absl::Nanoseconds(elapsed_ns_.load()); }

void SimClock::Advance(absl::Duration by) {
  absl::MutexLock lock(&mutex_);
  elapsed_ns_ += absl::ToInt64Nanoseconds(by);
  for (Wakeup* wakeup : waiting_) {
    const std::lock_guard poke(wakeup->mutex_);
    wakeup->changed_.notify_all();
  }
}

bool SimClock::Wait(Wakeup& wakeup, absl::Duration timeout) {
  const absl::Duration deadline = Monotonic() + timeout;
  {
    absl::MutexLock lock(&mutex_);
    waiting_.push_back(&wakeup);
  }
  bool notified;
  {
    std::unique_lock lock(wakeup.mutex_);
    wakeup.changed_.wait(lock, [&] { return wakeup.notified_ || Monotonic() >= deadline; });
    notified = std::exchange(wakeup.notified_, false);
  }
  absl::MutexLock lock(&mutex_);
  waiting_.erase(std::find(waiting_.begin(), waiting_.end(), &wakeup));
  return notified;
}

}  // namespace switchyard
