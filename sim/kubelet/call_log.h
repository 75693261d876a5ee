// SPDX-License-Identifier: Apache-2.0
#pragma once

// What went over the wire, for tests and for `status`: counters, and the last calls to a plugin.
// Bounded; any thread.

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "sim/kubelet/changes.h"

namespace switchyard::sim {

struct CallCounts {
  std::int64_t registers = 0;  // Register calls received, refused ones included
  std::int64_t options = 0;
  std::int64_t streams_opened = 0;  // ListAndWatch
  std::int64_t streams_ended = 0;   // and what kubelet does then is done
  std::int64_t snapshots = 0;       // ListAndWatch messages
  std::int64_t preferred = 0;
  std::int64_t allocate = 0;
  std::int64_t pre_start = 0;
  std::int64_t pod_list = 0;  // PodResources, those over the rate limit not included
  std::int64_t pod_get = 0;
  std::int64_t pod_allocatable = 0;
  std::int64_t rate_limited = 0;
};

struct PreferredCall {
  std::string resource = {};
  std::vector<std::string> available = {};     // in the order sent
  std::vector<std::string> must_include = {};  // in the order sent
  int size = 0;
  std::vector<std::string> answer = {};  // in the order received
  std::string error = {};                // empty: none
};

struct AllocateCall {
  std::string resource = {};
  std::vector<std::string> ids = {};  // in the order sent
  std::string error = {};             // empty: none
};

struct PreStartCall {
  std::string resource = {};
  std::vector<std::string> ids = {};  // in the order sent
  std::string error = {};             // empty: none
};

class CallLog {
 public:
  static constexpr size_t kKept = 64;  // calls of each kind

  // Bumped with every entry; must outlive the log.
  explicit CallLog(Changes& changes) : changes_(changes) {}

  // As the call begins.
  void Count(std::int64_t CallCounts::* counter) {
    {
      absl::MutexLock lock(&mutex_);
      ++(counts_.*counter);
    }
    changes_.Bump();
  }
  // Once it is answered.
  void Add(PreferredCall call) {
    {
      absl::MutexLock lock(&mutex_);
      Push(preferred_, std::move(call));
    }
    changes_.Bump();
  }
  void Add(AllocateCall call) {
    {
      absl::MutexLock lock(&mutex_);
      Push(allocate_, std::move(call));
    }
    changes_.Bump();
  }

  void Add(PreStartCall call) {
    {
      absl::MutexLock lock(&mutex_);
      Push(pre_start_, std::move(call));
    }
    changes_.Bump();
  }

  [[nodiscard]] CallCounts counts() const {
    absl::MutexLock lock(&mutex_);
    return counts_;
  }
  // Oldest first.
  [[nodiscard]] std::vector<PreferredCall> preferred() const {
    absl::MutexLock lock(&mutex_);
    return {preferred_.begin(), preferred_.end()};
  }
  [[nodiscard]] std::vector<AllocateCall> allocate() const {
    absl::MutexLock lock(&mutex_);
    return {allocate_.begin(), allocate_.end()};
  }
  [[nodiscard]] std::vector<PreStartCall> pre_start() const {
    absl::MutexLock lock(&mutex_);
    return {pre_start_.begin(), pre_start_.end()};
  }

 private:
  template <typename Call>
  static void Push(std::deque<Call>& calls, Call call) {
    calls.push_back(std::move(call));
    if (calls.size() > kKept) calls.pop_front();
  }

  Changes& changes_;
  mutable absl::Mutex mutex_;
  CallCounts counts_ ABSL_GUARDED_BY(mutex_);
  std::deque<PreferredCall> preferred_ ABSL_GUARDED_BY(mutex_);
  std::deque<AllocateCall> allocate_ ABSL_GUARDED_BY(mutex_);
  std::deque<PreStartCall> pre_start_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace switchyard::sim
