// SPDX-License-Identifier: Apache-2.0
#pragma once

// The faults of registration that a test or an operator of the simulator asks for. Any thread.

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace switchyard::sim {

class Faults {
 public:
  void FailRegisters(int next) {
    absl::MutexLock lock(&mutex_);
    fail_registers_ = next;
  }
  void WithholdStreams(int next) {
    absl::MutexLock lock(&mutex_);
    withhold_streams_ = next;
  }
  void HoldDialBack(bool hold) {
    absl::MutexLock lock(&mutex_);
    hold_ = hold;
  }
  // While set nothing is held: kubelet is stopping.
  void SetStopping(bool stopping) {
    absl::MutexLock lock(&mutex_);
    stopping_ = stopping;
  }

  [[nodiscard]] bool TakeFailure() { return TakeOne(&Faults::fail_registers_); }
  [[nodiscard]] bool TakeWithheldStream() { return TakeOne(&Faults::withhold_streams_); }
  // Blocks while dial-backs are held.
  void AwaitDialBack() {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(this, &Faults::MayDial));
  }

 private:
  bool TakeOne(int Faults::* count) {
    absl::MutexLock lock(&mutex_);
    if (this->*count <= 0) return false;
    --(this->*count);
    return true;
  }
  bool MayDial() const ABSL_NO_THREAD_SAFETY_ANALYSIS { return !hold_ || stopping_; }

  absl::Mutex mutex_;
  int fail_registers_ ABSL_GUARDED_BY(mutex_) = 0;
  int withhold_streams_ ABSL_GUARDED_BY(mutex_) = 0;
  bool hold_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace switchyard::sim
