// SPDX-License-Identifier: Apache-2.0
#include "base/log_thread.h"

#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/log_sink.h"

namespace switchyard {
namespace {

constexpr size_t kMaxWaiting = size_t{1} << 20;

}  // namespace

void WriteToStandardError(absl::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(STDERR_FILENO, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return;  // nobody to tell
    text.remove_prefix(static_cast<size_t>(wrote));
  }
}

LogThread::LogThread() : thread_([this] { Run(); }) { SendLinesTo(this); }

LogThread::~LogThread() {
  SendLinesTo(nullptr);
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void LogThread::Append(absl::string_view line, bool urgent) {
  bool wake;
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() + line.size() > kMaxWaiting) {
      ++dropped_;
      return;
    }
    wake = waiting_.empty() || urgent;  // else the thread is gathering already
    absl::StrAppend(&waiting_, line);
    urgent_ = urgent_ || urgent;
  }
  if (wake) changed_.notify_one();
}

void LogThread::Run() {
  ::pthread_setname_np(::pthread_self(), "log");
  std::string text;
  for (bool last = false; !last;) {
    int dropped = 0;
    text.clear();
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
      changed_.wait_for(lock, kGather, [this] { return stopping_ || urgent_; });
      last = stopping_;
      urgent_ = false;
      text.swap(waiting_);
      dropped = std::exchange(dropped_, 0);
    }
    WriteToStandardError(text);
    if (dropped > 0) {
      Log(Severity::kWarning,
          "lines of the log were dropped: standard error was not read fast enough",
          {{"lines", absl::StrCat(dropped)}});
    }
  }
}

}  // namespace switchyard
