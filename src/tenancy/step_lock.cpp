// SPDX-License-Identifier: Apache-2.0
#include "tenancy/step_lock.h"

#include <algorithm>

namespace switchyard::tenancy {

bool StepLock::LockFor(Clock& clock, absl::Duration timeout) {
  Wakeup turn;
  {
    absl::MutexLock lock(&mutex_);
    if (!taken_) return taken_ = true;
    if (timeout <= absl::ZeroDuration()) return false;
    waiting_.push_back(&turn);
  }
  turn.WaitFor(clock, timeout);
  absl::MutexLock lock(&mutex_);
  const auto mine = std::find(waiting_.begin(), waiting_.end(), &turn);
  if (mine == waiting_.end()) return true;  // handed over, perhaps at the last moment
  waiting_.erase(mine);
  return false;
}

void StepLock::Unlock() {
  absl::MutexLock lock(&mutex_);
  if (waiting_.empty()) {
    taken_ = false;
    return;
  }
  // The waiter takes `mutex_` before its Wakeup goes out of scope.
  waiting_.front()->Notify();
  waiting_.pop_front();
}

}  // namespace switchyard::tenancy
