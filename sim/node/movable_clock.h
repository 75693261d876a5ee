// SPDX-License-Identifier: Apache-2.0
#pragma once

// The machine's clock, but for a part of the simulator it can be set forward: to see in seconds
// what takes kubelet five minutes. Any thread.

#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"

namespace switchyard::sim {

class MovableClock final : public Clock {
 public:
  absl::Time Now() override;
  absl::Duration Monotonic() override;

  // Every wait is woken, and whoever waited looks at the time again.
  void Advance(absl::Duration by);

  [[nodiscard]] size_t waiting();  // how many waits there are now

 private:
  bool Wait(Wakeup& wakeup, absl::Duration timeout) override;
  [[nodiscard]] absl::Duration ahead();

  RealClock real_;
  absl::Mutex mutex_;
  absl::Duration ahead_ ABSL_GUARDED_BY(mutex_) = absl::ZeroDuration();
  std::vector<Wakeup*> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace switchyard::sim
