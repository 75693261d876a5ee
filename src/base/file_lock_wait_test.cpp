// SPDX-License-Identifier: Apache-2.0
#include "base/file_lock_wait.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "base/files.h"
#include "base/lock_owner.h"

namespace switchyard {
namespace {

class FileLockWaitTest : public testing::Test {
 protected:
  FileLockWaitTest() {
    char name[] = "/tmp/lock-XXXXXX";
    folder_ = ::mkdtemp(name);
    path_ = folder_ + "/lock";
  }
  ~FileLockWaitTest() override { std::filesystem::remove_all(folder_); }

  // The child that blocks for us.
  static pid_t Child() {
    const std::string text =
        ReadFile(absl::StrCat("/proc/self/task/", ::getpid(), "/children"), 4096).value_or("");
    return text.empty() ? 0 : std::stoi(text);
  }

  std::string folder_;
  std::string path_;
};

TEST_F(FileLockWaitTest, GetsTheLockTheMomentItIsFree) {
  auto first = FileLock::TryAcquire(path_);
  ASSERT_TRUE(first.ok()) << first.status();
  absl::Notification ended;
  auto wait = FileLockWait::Start(path_, [&] { ended.Notify(); });
  ASSERT_TRUE(wait.ok()) << wait.status();
  EXPECT_EQ((*wait)->Take().status().code(), absl::StatusCode::kFailedPrecondition);
  std::ofstream(path_) << "1\n";  // as if the holder were another process
  {
    const FileLock gone = *std::move(first);
  }
  ended.WaitForNotification();
  const auto second = (*wait)->Take();
  ASSERT_TRUE(second.ok()) << second.status();
  wait->reset();
  EXPECT_TRUE(absl::IsUnavailable(FileLock::TryAcquire(path_).status())) << "it is really held";
  const auto owner = ReadLockOwner(path_);
  ASSERT_TRUE(owner.ok()) << owner.status();
  EXPECT_EQ(owner->pid, ::getpid()) << "us, not the child that waited";
}

TEST_F(FileLockWaitTest, AWaitCalledOffEndsAndLeavesTheLockToItsHolder) {
  auto first = FileLock::TryAcquire(path_);
  ASSERT_TRUE(first.ok()) << first.status();
  {
    const auto wait = FileLockWait::Start(path_, [] {});
    ASSERT_TRUE(wait.ok()) << wait.status();
  }  // returns although the lock is held
  EXPECT_TRUE(absl::IsUnavailable(FileLock::TryAcquire(path_).status()));
  {
    const FileLock gone = *std::move(first);
  }
  EXPECT_TRUE(FileLock::TryAcquire(path_).ok()) << "nobody is left who waits for it";
}

TEST_F(FileLockWaitTest, ALockThatWasNotTakenIsFreeAgain) {
  {
    absl::Notification ended;
    const auto wait = FileLockWait::Start(path_, [&] { ended.Notify(); });
    ASSERT_TRUE(wait.ok()) << wait.status();
    ended.WaitForNotification();
    EXPECT_TRUE(absl::IsUnavailable(FileLock::TryAcquire(path_).status()));
  }
  EXPECT_TRUE(FileLock::TryAcquire(path_).ok());
}

TEST_F(FileLockWaitTest, AKilledChildIsAnErrorAndNoLock) {
  const auto first = FileLock::TryAcquire(path_);
  ASSERT_TRUE(first.ok()) << first.status();
  absl::Notification ended;
  const auto wait = FileLockWait::Start(path_, [&] { ended.Notify(); });
  ASSERT_TRUE(wait.ok()) << wait.status();
  const pid_t child = Child();
  ASSERT_GT(child, 0);
  ::kill(child, SIGKILL);
  ended.WaitForNotification();
  const auto lock = (*wait)->Take();
  EXPECT_EQ(lock.status().code(), absl::StatusCode::kInternal) << lock.status();
  EXPECT_TRUE(absl::StrContains(lock.status().message(), "signal 9")) << lock.status();
}

TEST_F(FileLockWaitTest, AKilledWaiterTakesItsChildWithIt) {
  const auto first = FileLock::TryAcquire(path_);
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0) << "the orphan becomes ours";
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t waiter = ::fork();
  if (waiter == 0) {
    const auto wait = FileLockWait::Start(path_, [] {});
    (void)!::write(ready[1], "y", 1);
    while (true) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ::kill(waiter, SIGKILL);
  ::waitpid(waiter, nullptr, 0);
  int status = 0;
  EXPECT_GT(::waitpid(-1, &status, 0), 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(FileLockWaitTest, AMissingFolderIsSaidAtOnce) {
  const auto wait = FileLockWait::Start(folder_ + "/no/lock", [] {});
  EXPECT_EQ(wait.status().code(), absl::StatusCode::kNotFound) << wait.status();
}

}  // namespace
}  // namespace switchyard
