// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes what is logged from a thread of its own, a few lines at a time: reporting an event must
// not block, and a reader that is slow, or stuck, must not hold up a pod. While there is no
// LogThread, a line is written before Log returns. At most one at a time, made and destroyed while
// nobody logs; the destructor returns when everything is written.
//
// Bounded: with a MiB waiting, new lines are dropped, and a line says how many. Lines up to
// kGather old are lost if the process is killed.

#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace switchyard {

class LogThread {
 public:
  static constexpr absl::Duration kGather = absl::Milliseconds(10);

  LogThread();
  ~LogThread();
  LogThread(const LogThread&) = delete;
  LogThread& operator=(const LogThread&) = delete;

  // From the logger, any thread. An urgent line does not wait to be gathered with others.
  void Append(absl::string_view line, bool urgent);

 private:
  void Run();

  absl::Mutex mutex_;
  std::string waiting_ ABSL_GUARDED_BY(mutex_);
  int dropped_ ABSL_GUARDED_BY(mutex_) = 0;
  bool urgent_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace switchyard
