// SPDX-License-Identifier: Apache-2.0
// How long a request may take: `wait` and `fabric_timeout` together, 20 s here.

#include <gmock/gmock.h>

#include "tenancy/enforcer.h"
#include "tenancy/testing/enforcer_fixture.h"

namespace switchyard::tenancy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class EnforcerBoundTest : public testing::EnforcerFixture {
 protected:
  EnforcerBoundTest() {
    Start();
    EXPECT_TRUE(Acquire({1, 3}).ok());
    EXPECT_TRUE(Acquire({2, 4}).ok());
    fabric_.calls.clear();
    fabric_.limits.clear();
  }
  void EachChangeTakes(absl::Duration time) {
    fabric_.before_change = [this, time] { clock_.Advance(time); };
  }
};

TEST_F(EnforcerBoundTest, AllChangesOfARequestShareOneBudget) {
  EachChangeTakes(absl::Seconds(6));
  ASSERT_TRUE(Acquire({1, 2, 3, 4}).ok());
  EXPECT_THAT(fabric_.calls, ElementsAre("-3", "-4", "+1"));
  EXPECT_THAT(fabric_.limits, ElementsAre(absl::Seconds(15), absl::Seconds(14), absl::Seconds(8)));
}

TEST_F(EnforcerBoundTest, WhatWouldTakeTooLongIsNotBegun) {
  EachChangeTakes(absl::Seconds(8));
  const absl::Duration began = clock_.Monotonic();
  const Status refused = Acquire({1, 2, 3, 4}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("took longer than what is left for the next one"));
  EXPECT_THAT(fabric_.calls, ElementsAre("-3", "-4"));
  EXPECT_THAT(journal_.records, IsEmpty()) << "what was released stays released";
  EXPECT_LE(clock_.Monotonic() - began, absl::Seconds(20));
  fabric_.before_change = nullptr;
  EXPECT_TRUE(Acquire({1, 2, 3, 4}).ok()) << "Fabric Manager is not down for it";
}

TEST_F(EnforcerBoundTest, WhatHoldersAndAdmissionTookIsLessForFabricManager) {
  TenancyRequest request = For({5, 7});
  request.asked = clock_.Monotonic() - absl::Seconds(12);
  ASSERT_TRUE(enforcer_->Acquire(request).ok());
  EXPECT_THAT(fabric_.limits, ElementsAre(absl::Seconds(8)));
}

TEST_F(EnforcerBoundTest, AChangeThatNobodyWaitsForHasAllTheTime) {
  ASSERT_TRUE(enforcer_->ReleaseById(journal_.records.begin()->first, /*force=*/true).ok());
  EachChangeTakes(absl::Seconds(15));
  clock_.Advance(absl::Seconds(30));
  ASSERT_TRUE(enforcer_->ReleaseById(journal_.records.begin()->first, /*force=*/true).ok());
  EXPECT_THAT(fabric_.limits, ElementsAre(absl::Seconds(15), absl::Seconds(15)));
}

TEST_F(EnforcerBoundTest, AReleaseIsMeasuredByOutcome) {
  EachChangeTakes(absl::Seconds(3));
  const std::uint64_t id = journal_.records.begin()->first;
  fabric_.failures.push_back({absl::InvalidArgumentError("no such partition"), false});
  EXPECT_FALSE(enforcer_->ReleaseById(id, /*force=*/true).ok());
  EXPECT_TRUE(enforcer_->ReleaseById(id, /*force=*/true).ok());
  std::vector<std::string> timings;
  for (const Timing& timing : events_.TakeTimings()) {
    EXPECT_EQ(timing.name, "release");
    EXPECT_EQ(timing.took, absl::Seconds(3));
    for (const auto& [key, value] : timing.labels) timings.emplace_back(value);
  }
  EXPECT_THAT(timings, ElementsAre("failed", "released"));
}

TEST_F(EnforcerBoundTest, UndoHasWhatTheRequestLeft) {
  EachChangeTakes(absl::Seconds(11));
  const auto acquired = Acquire({5, 7});
  ASSERT_TRUE(acquired.ok()) << acquired.status();
  fabric_.before_change = nullptr;
  enforcer_->Undo(*acquired);
  EXPECT_THAT(fabric_.limits, ElementsAre(absl::Seconds(15), absl::Seconds(9)));
}

TEST_F(EnforcerBoundTest, UndoWithoutTimeIsLeftToTheReconciler) {
  const auto acquired = Acquire({5, 7});
  ASSERT_TRUE(acquired.ok()) << acquired.status();
  clock_.Advance(absl::Seconds(20));
  enforcer_->Undo(*acquired);
  EXPECT_THAT(fabric_.calls, ElementsAre("+5"));
  Turn();
  EXPECT_THAT(fabric_.calls, ElementsAre("+5", "-5")) << "nobody was given it: no grace";
}

}  // namespace
}  // namespace switchyard::tenancy
