// SPDX-License-Identifier: Apache-2.0
#include "base/log_thread.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/log.h"
#include "base/unique_fd.h"

namespace switchyard {
namespace {

// Standard error is a pipe while it lives; Finish puts it back and returns what was written.
class PipedStandardError {
 public:
  PipedStandardError() : before_(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    read_end_ = UniqueFd(ends[0]);
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[1]);
  }
  void Read() {
    reader_ = std::thread([this] {
      char buffer[65536];
      for (ssize_t got; (got = ::read(read_end_.get(), buffer, sizeof(buffer))) > 0;)
        text_.append(buffer, static_cast<size_t>(got));
    });
  }
  std::vector<std::string> Finish() {
    ::dup2(before_.get(), STDERR_FILENO);  // the pipe's last writer is gone
    reader_.join();
    return absl::StrSplit(text_, '\n', absl::SkipEmpty());
  }

 private:
  UniqueFd before_;
  UniqueFd read_end_;
  std::thread reader_;
  std::string text_;
};

TEST(LogThreadTest, WritesEveryLineInOrder) {
  PipedStandardError error;
  error.Read();
  {
    LogThread thread;
    for (int i = 0; i < 1000; ++i)
      Log(i % 100 == 0 ? Severity::kError : Severity::kInfo, "x", {{"n", absl::StrCat(i)}});
  }
  Log(Severity::kInfo, "without a thread");
  const std::vector<std::string> lines = error.Finish();
  ASSERT_EQ(lines.size(), 1001u);
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(absl::EndsWith(lines[i], absl::StrCat(" n=", i)));
}

// Without the thread, or without its bound, this would wait for ever.
TEST(LogThreadTest, AReaderThatIsStuckHoldsNobodyUpAndIsToldWhatItMissed) {
  constexpr int kLines = 60'000;  // more than twice the bound and a pipe together
  PipedStandardError error;
  {
    LogThread thread;
    for (int i = 0; i < kLines; ++i) Log(Severity::kError, "x", {{"n", absl::StrCat(i)}});
    error.Read();
  }
  int written = 0;
  int dropped = 0;
  for (const std::string& line : error.Finish()) {
    int lines = 0;
    if (absl::StrContains(line, "were dropped")) {
      ASSERT_TRUE(absl::SimpleAtoi(line.substr(line.rfind('=') + 1), &lines)) << line;
      dropped += lines;
    } else {
      ++written;
    }
  }
  EXPECT_GT(dropped, 0);
  EXPECT_EQ(written + dropped, kLines);
}

}  // namespace
}  // namespace switchyard
