// SPDX-License-Identifier: Apache-2.0
#include "sim/node/movable_clock.h"

namespace switchyard::sim {

absl::Duration MovableClock::ahead() {
  absl::MutexLock lock(&mutex_);
  return ahead_;
}

absl::Time MovableClock::Now() { return real_.Now() + ahead(); }

absl::Duration MovableClock::Monotonic() { return real_.Monotonic() + ahead(); }

void MovableClock::Advance(absl::Duration by) {
  absl::MutexLock lock(&mutex_);
  ahead_ += by;
  for (Wakeup* wakeup : waiting_) wakeup->Notify();
}

size_t MovableClock::waiting() {
  absl::MutexLock lock(&mutex_);
  return waiting_.size();
}

bool MovableClock::Wait(Wakeup& wakeup, absl::Duration timeout) {
  {
    absl::MutexLock lock(&mutex_);
    waiting_.push_back(&wakeup);
  }
  const bool notified = wakeup.WaitFor(real_, timeout);
  absl::MutexLock lock(&mutex_);
  std::erase(waiting_, &wakeup);
  return notified;
}

}  // namespace switchyard::sim
