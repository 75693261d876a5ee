// SPDX-License-Identifier: Apache-2.0
#pragma once

// A thread that runs one step again and again: every background activity of the agent is a step
// (a function that does its work and says how long to wait before the next), so that it can be
// tested without a thread. The destructor stops it after the step in progress. Poke and Stop from
// any thread, but not from the step itself.

#include <atomic>
#include <string>
#include <thread>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace switchyard {

class Worker {
 public:
  using Step = absl::AnyInvocable<absl::Duration()>;

  // name: at most 15 characters, as ps -L shows it. `clock` must outlive the worker.
  Worker(std::string name, Clock& clock, Step step);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Ends the wait: the next step runs at once.
  void Poke() { wakeup_.Notify(); }
  // Returns when the thread has ended. May be called twice.
  void Stop();

 private:
  Clock& clock_;
  Wakeup wakeup_;
  std::atomic<bool> stopping_ = false;
  Step step_;
  std::thread thread_;
};

}  // namespace switchyard
