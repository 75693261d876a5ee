// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes what is logged from a thread of its own, a few lines at a time: reporting an event must
// not block, and a reader that is slow, or stuck, must not hold up a pod. While there is no
// LogThread, a line is written before Log returns. At most one at a time, made and destroyed while
// nobody logs; the destructor returns when everything is written.
//
// Bounded: with a MiB waiting, new lines are dropped, and a line says how many. Lines up to
// kGather old are lost if the process is killed.

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "absl/strings/string_view.h"

namespace switchyard {

class LogThread {
 public:
  static constexpr std::chrono::milliseconds kGather{10};

  LogThread();
  ~LogThread();
  LogThread(const LogThread&) = delete;
  LogThread& operator=(const LogThread&) = delete;

  // From the logger, any thread. An urgent line does not wait to be gathered with others.
  void Append(absl::string_view line, bool urgent);

 private:
  void Run();

  // Not absl's: its timed waits follow the wall clock, and a clock set back must not stop the log.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string waiting_;  // this and the rest: under mutex_
  int dropped_ = 0;
  bool urgent_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace switchyard
