// SPDX-License-Identifier: Apache-2.0
#include "base/file_lock.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace switchyard {
namespace {

class FileLockTest : public testing::Test {
 protected:
  FileLockTest() {
    char name[] = "/tmp/lock-XXXXXX";
    folder_ = ::mkdtemp(name);
    path_ = folder_ + "/lock";
  }
  ~FileLockTest() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
  std::string path_;
};

TEST_F(FileLockTest, TheSecondIsToldWhoHoldsIt) {
  const auto first = FileLock::TryAcquire(path_);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = FileLock::TryAcquire(path_);
  ASSERT_EQ(second.status().code(), absl::StatusCode::kUnavailable) << second.status();
  const absl::string_view message = second.status().message();
  EXPECT_TRUE(absl::StrContains(message, path_)) << message;
  EXPECT_TRUE(absl::StrContains(message, absl::StrCat("process ", ::getpid()))) << message;
  EXPECT_TRUE(absl::StrContains(message, "base_test")) << "its command: " << message;
}

TEST_F(FileLockTest, IsFreeAfterItsOwnersEnd) {
  {
    ASSERT_TRUE(FileLock::TryAcquire(path_).ok());
  }
  EXPECT_TRUE(FileLock::TryAcquire(path_).ok());
}

TEST_F(FileLockTest, IsFreeAfterItsHolderWasKilled) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t holder = ::fork();
  if (holder == 0) {
    const auto lock = FileLock::TryAcquire(path_);
    const char ok = lock.ok() ? 'y' : 'n';
    (void)!::write(ready[1], &ok, 1);
    while (true) ::pause();
  }
  char ok = 0;
  ASSERT_EQ(::read(ready[0], &ok, 1), 1);
  EXPECT_EQ(ok, 'y');
  const auto refused = FileLock::TryAcquire(path_);
  EXPECT_TRUE(absl::StrContains(refused.status().message(), absl::StrCat("process ", holder)))
      << refused.status();
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
  EXPECT_TRUE(FileLock::TryAcquire(path_).ok()) << "although its PID is still in the file";
}

TEST_F(FileLockTest, AFileThatSaysNonsenseIsStillALock) {
  std::ofstream(path_) << std::string(5000, 'x');
  const auto first = FileLock::TryAcquire(path_);
  ASSERT_TRUE(first.ok()) << first.status();
  std::ofstream(path_) << "no number";
  const auto second = FileLock::TryAcquire(path_);
  EXPECT_TRUE(absl::StrContains(second.status().message(), "another process")) << second.status();
}

TEST_F(FileLockTest, AMissingFolderIsNoHolder) {
  const auto lock = FileLock::TryAcquire(folder_ + "/no/lock");
  EXPECT_EQ(lock.status().code(), absl::StatusCode::kNotFound) << lock.status();
}

}  // namespace
}  // namespace switchyard
