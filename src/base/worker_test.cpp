// SPDX-License-Identifier: Apache-2.0
#include "base/worker.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include "absl/synchronization/mutex.h"

namespace switchyard {
namespace {

// Counts steps and lets a test wait for one.
class Steps {
 public:
  void Count() {
    absl::MutexLock lock(&mutex_);
    ++count_;
  }
  void WaitFor(int count) {
    absl::MutexLock lock(&mutex_);
    const auto reached = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return count_ >= count; };
    mutex_.Await(absl::Condition(&reached));
  }
  int count() {
    absl::MutexLock lock(&mutex_);
    return count_;
  }

 private:
  absl::Mutex mutex_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
};

TEST(WorkerTest, StepsAtOnceAndThenWhenItIsTime) {
  SimClock clock;
  Steps steps;
  Worker worker("test", clock, [&] {
    steps.Count();
    return absl::Seconds(10);
  });
  steps.WaitFor(1);
  clock.Advance(absl::Seconds(9));
  EXPECT_EQ(steps.count(), 1);
  while (steps.count() < 2) clock.Advance(absl::Seconds(1));
}

TEST(WorkerTest, APokeEndsTheWait) {
  SimClock clock;
  Steps steps;
  Worker worker("test", clock, [&] {
    steps.Count();
    return absl::InfiniteDuration();
  });
  for (int i = 1; i <= 5; ++i) {
    steps.WaitFor(i);
    worker.Poke();
  }
  steps.WaitFor(6);
}

TEST(WorkerTest, StopEndsALongWaitAndMayBeCalledTwice) {
  SimClock clock;
  Steps steps;
  Worker worker("test", clock, [&] {
    steps.Count();
    return absl::InfiniteDuration();
  });
  steps.WaitFor(1);
  worker.Stop();
  worker.Stop();
  worker.Poke();
  EXPECT_EQ(steps.count(), 1);
}

TEST(WorkerTest, TheThreadHasTheNameCutToWhatTheKernelTakes) {
  SimClock clock;
  Steps steps;
  std::string name;
  {
    Worker worker("a-name-of-more-than-15", clock, [&] {
      char buffer[32] = "";
      pthread_getname_np(pthread_self(), buffer, sizeof(buffer));
      name = buffer;
      steps.Count();
      return absl::InfiniteDuration();
    });
    steps.WaitFor(1);
  }
  EXPECT_EQ(name, "a-name-of-more-");
}

}  // namespace
}  // namespace switchyard
