// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <gtest/gtest.h>

#include <thread>

#include "absl/synchronization/notification.h"

namespace switchyard {
namespace {

TEST(ClockTest, SimulatedTimeStandsStill) {
  const absl::Time start = absl::FromUnixSeconds(1000);
  SimClock clock(start);
  EXPECT_EQ(clock.Now(), start);
  EXPECT_EQ(clock.Monotonic(), absl::ZeroDuration());
  clock.Advance(absl::Seconds(90));
  EXPECT_EQ(clock.Now(), start + absl::Seconds(90));
  EXPECT_EQ(clock.Monotonic(), absl::Seconds(90));
}

TEST(ClockTest, RealTimeNeverGoesBackwards) {
  RealClock clock;
  const absl::Duration first = clock.Monotonic();
  EXPECT_GE(clock.Monotonic(), first);
  EXPECT_GT(first, absl::ZeroDuration());
}

template <typename T>
class WakeupTest : public testing::Test {
 protected:
  T clock_;
  Wakeup wakeup_;
};
using Clocks = testing::Types<RealClock, SimClock>;
TYPED_TEST_SUITE(WakeupTest, Clocks);

TYPED_TEST(WakeupTest, ANotificationBeforeTheWaitIsNotLostAndTakenOnce) {
  this->wakeup_.Notify();
  this->wakeup_.Notify();
  EXPECT_TRUE(this->wakeup_.WaitFor(this->clock_, absl::InfiniteDuration()));
  EXPECT_FALSE(this->wakeup_.WaitFor(this->clock_, absl::ZeroDuration()));
  EXPECT_FALSE(this->wakeup_.WaitFor(this->clock_, absl::Seconds(-5)));
}

TYPED_TEST(WakeupTest, ANotificationEndsAWait) {
  absl::Notification started;
  std::thread notifier([&] {
    started.WaitForNotification();
    this->wakeup_.Notify();
  });
  started.Notify();
  EXPECT_TRUE(this->wakeup_.WaitFor(this->clock_, absl::InfiniteDuration()));
  notifier.join();
}

TYPED_TEST(WakeupTest, AVeryLongTimeIsNoTimeAtAll) {
  absl::Notification started;
  std::thread notifier([&] {
    started.WaitForNotification();
    this->wakeup_.Notify();
  });
  started.Notify();
  EXPECT_TRUE(this->wakeup_.WaitFor(this->clock_, absl::Hours(24) * 365 * 5000));
  notifier.join();
}

TEST(RealClockTest, AWaitEndsByItself) {
  RealClock clock;
  Wakeup wakeup;
  const absl::Duration before = clock.Monotonic();
  EXPECT_FALSE(wakeup.WaitFor(clock, absl::Milliseconds(2)));
  EXPECT_GE(clock.Monotonic() - before, absl::Milliseconds(2));
}

TEST(SimClockTest, AWaitEndsWhenItsTimeHasComeAndNotBefore) {
  SimClock clock;
  Wakeup wakeup;
  std::atomic<bool> ended = false;
  std::thread waiter([&] {
    EXPECT_FALSE(wakeup.WaitFor(clock, absl::Seconds(10)));
    ended = true;
  });
  // Whether the wait begins before or after this, its deadline is not before 10 s.
  clock.Advance(absl::Seconds(4));
  clock.Advance(absl::Seconds(5));
  EXPECT_FALSE(ended);
  while (!ended) clock.Advance(absl::Seconds(1));
  waiter.join();
  EXPECT_GE(clock.Monotonic(), absl::Seconds(10));
}

TEST(SimClockTest, AdvanceWakesEveryWaiter) {
  SimClock clock;
  std::atomic<int> ended = 0;
  std::vector<std::thread> waiters;
  for (int i = 0; i < 4; ++i) {
    waiters.emplace_back([&, i] {
      Wakeup wakeup;
      EXPECT_FALSE(wakeup.WaitFor(clock, absl::Seconds(1 + i)));
      ++ended;
    });
  }
  while (ended < 4) clock.Advance(absl::Seconds(1));
  for (std::thread& waiter : waiters) waiter.join();
}

}  // namespace
}  // namespace switchyard
