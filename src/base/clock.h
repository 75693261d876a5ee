// SPDX-License-Identifier: Apache-2.0
#pragma once

// Time as a parameter. RealClock is the machine's; SimClock stands still until a test moves it.
// Clock and Wakeup may be used from any thread; a Wakeup has one waiter and must outlive its wait.
// Nothing outside this file sleeps.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace switchyard {

class Clock;

// A sticky wake-up call for one waiting thread: Notify before Wait is not lost.
class Wakeup {
 public:
  void Notify();

  // Returns true when notified (and takes the notification), false when `timeout` of the clock's
  // time has passed. InfiniteDuration waits for a notification only.
  bool WaitFor(Clock& clock, absl::Duration timeout);

 private:
  friend class RealClock;
  friend class SimClock;

  // Not Abseil's: its waits with a timeout follow the wall clock in the version we build with, and
  // a clock that is set back an hour would stop every background activity for that hour.
  std::mutex mutex_;
  std::condition_variable changed_;
  bool notified_ = false;  // guarded by mutex_
};

class Clock {
 public:
  virtual ~Clock() = default;

  // Wall time: for records and messages.
  virtual absl::Time Now() = 0;
  // Since some fixed point, never backwards: for every duration and deadline.
  virtual absl::Duration Monotonic() = 0;

 private:
  friend class Wakeup;
  virtual bool Wait(Wakeup& wakeup, absl::Duration timeout) = 0;
};

class RealClock final : public Clock {
 public:
  absl::Time Now() override;
  absl::Duration Monotonic() override;

 private:
  bool Wait(Wakeup& wakeup, absl::Duration timeout) override;
};

class SimClock final : public Clock {
 public:
  explicit SimClock(absl::Time start = absl::FromUnixSeconds(1'700'000'000)) : start_(start) {}

  absl::Time Now() override;
  absl::Duration Monotonic() override;

  // Moves time and wakes every wait whose deadline has come.
  void Advance(absl::Duration by);

 private:
  bool Wait(Wakeup& wakeup, absl::Duration timeout) override;

  const absl::Time start_;
  std::atomic<std::int64_t> elapsed_ns_ = 0;  // read by waiters that hold their own mutex
  absl::Mutex mutex_;
  std::vector<Wakeup*> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace switchyard
