// SPDX-License-Identifier: Apache-2.0
#include "agent/ownership.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <future>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"

namespace switchyard::agent {
namespace {

using ::testing::HasSubstr;

class Events : public EventSink {
 public:
  void Report(const Event& event) override {
    absl::MutexLock lock(&mutex_);
    events_.push_back(event);
  }
  // Waits for the n-th, from 1.
  Event Nth(size_t n) {
    absl::MutexLock lock(&mutex_);
    const auto there = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return events_.size() >= n; };
    mutex_.Await(absl::Condition(&there));
    return events_[n - 1];
  }
  size_t count() {
    absl::MutexLock lock(&mutex_);
    return events_.size();
  }

 private:
  absl::Mutex mutex_;
  std::vector<Event> events_ ABSL_GUARDED_BY(mutex_);
};

class OwnershipTest : public testing::Test {
 protected:
  OwnershipTest() {
    char name[] = "/tmp/owner-XXXXXX";
    folder_ = ::mkdtemp(name);
    path_ = folder_ + "/agent.lock";
    Result<FileLock> lock = FileLock::TryAcquire(path_);
    if (lock.ok()) holder_ = *std::move(lock);
  }
  ~OwnershipTest() override { std::filesystem::remove_all(folder_); }

  std::future<Result<FileLock>> Wait(absl::Duration patience) {
    return std::async(std::launch::async, [this, patience] {
      return WaitForOwnership(path_, patience,
                              {&clock_, &events_, &wakeup_, [this] { return stopped_.load(); }});
    });
  }

  std::string folder_;
  std::string path_;
  std::optional<FileLock> holder_;
  SimClock clock_;
  Events events_;
  Wakeup wakeup_;
  std::atomic<bool> stopped_ = false;
};

TEST_F(OwnershipTest, SaysWhoHoldsItAndTakesItWhenThatOneEnds) {
  ASSERT_TRUE(holder_.has_value());
  auto waiting = Wait(absl::InfiniteDuration());
  const Event event = events_.Nth(1);
  EXPECT_EQ(event.name, "lock_waiting");
  EXPECT_THAT(event.message, HasSubstr(absl::StrCat(path_, " is held by process ", ::getpid())));
  EXPECT_THAT(event.message, HasSubstr("agent_test"));
  holder_.reset();
  const Result<FileLock> lock = waiting.get();
  EXPECT_TRUE(lock.ok()) << lock.status();
  EXPECT_EQ(events_.Nth(2).name, "lock_taken");
  EXPECT_TRUE(absl::IsUnavailable(FileLock::TryAcquire(path_).status()));
}

TEST_F(OwnershipTest, StoppingEndsTheWaitAtOnce) {
  auto waiting = Wait(absl::InfiniteDuration());
  (void)events_.Nth(1);
  stopped_ = true;
  wakeup_.Notify();
  EXPECT_TRUE(absl::IsCancelled(waiting.get().status()));
  EXPECT_EQ(events_.count(), 1U);
}

TEST_F(OwnershipTest, SaysItAgainNowAndThen) {
  auto waiting = Wait(absl::InfiniteDuration());
  (void)events_.Nth(1);
  for (size_t n = 2; n < 5; ++n) {
    // Step by step: time that passes just before the wait begins does not count for it.
    while (events_.count() < n) clock_.Advance(absl::Seconds(1));
    const Event event = events_.Nth(n);
    EXPECT_EQ(event.name, "lock_waiting");
    EXPECT_THAT(event.message, HasSubstr(absl::StrCat("process ", ::getpid())));
    absl::Duration waited;
    ASSERT_TRUE(absl::ParseDuration(event.fields.at(0).second, &waited));
    EXPECT_GE(waited, kSayAgain * (n - 1)) << "not more often";
  }
  stopped_ = true;
  wakeup_.Notify();
  EXPECT_TRUE(absl::IsCancelled(waiting.get().status()));
}

TEST_F(OwnershipTest, PatienceHasAnEndThatNamesTheHolder) {
  auto waiting = Wait(absl::Minutes(1));
  (void)events_.Nth(1);
  while (waiting.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    clock_.Advance(absl::Seconds(1));
  }
  const Status status = waiting.get().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(absl::StrCat("is still held by process ", ::getpid())));
  EXPECT_THAT(std::string(status.message()), HasSubstr("after 1m"));
  holder_.reset();
  EXPECT_TRUE(FileLock::TryAcquire(path_).ok()) << "nobody waits any more";
}

}  // namespace
}  // namespace switchyard::agent
