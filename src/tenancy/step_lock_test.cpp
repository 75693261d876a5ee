// SPDX-License-Identifier: Apache-2.0
#include "tenancy/step_lock.h"

#include <gtest/gtest.h>

#include <thread>

#include "absl/synchronization/notification.h"

namespace switchyard::tenancy {
namespace {

TEST(StepLockTest, OneAtATime) {
  RealClock clock;
  StepLock lock;
  int inside = 0;
  int most = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 200; ++n) {
        if (!lock.LockFor(clock, absl::InfiniteDuration())) continue;
        most = std::max(most, ++inside);
        --inside;
        lock.Unlock();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(most, 1);
  EXPECT_TRUE(lock.LockFor(clock, absl::ZeroDuration())) << "and it is free in the end";
}

TEST(StepLockTest, AWaitEndsWithItsTime) {
  SimClock clock;
  StepLock lock;
  ASSERT_TRUE(lock.LockFor(clock, absl::ZeroDuration()));
  EXPECT_FALSE(lock.LockFor(clock, absl::ZeroDuration()));
  absl::Notification ended;
  bool had = true;
  std::thread waiter([&] {
    had = lock.LockFor(clock, absl::Seconds(5));
    ended.Notify();
  });
  // However late the thread comes to wait.
  while (!ended.HasBeenNotified()) clock.Advance(absl::Seconds(5)), std::this_thread::yield();
  waiter.join();
  EXPECT_FALSE(had);
  lock.Unlock();
  EXPECT_TRUE(lock.LockFor(clock, absl::ZeroDuration())) << "the one that gave up is forgotten";
}

}  // namespace
}  // namespace switchyard::tenancy
