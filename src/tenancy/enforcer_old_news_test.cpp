// SPDX-License-Identifier: Apache-2.0
// Views that were read before something changed, and arrive after it; answers that never came.
#include <gmock/gmock.h>

#include "tenancy/testing/enforcer_fixture.h"

namespace switchyard::tenancy {
namespace {

class EnforcerOldNewsTest : public testing::EnforcerFixture {
 protected:
  EnforcerOldNewsTest() { Start(); }
};

TEST_F(EnforcerOldNewsTest, AListFromBeforeOurOwnChangeIsNoNews) {
  const std::uint64_t generation = enforcer_->FabricGeneration();
  const auto before = fabric_.ReadPartitions();
  ASSERT_TRUE(Acquire({1, 3}).ok());
  enforcer_->ObserveFabric(before, generation);
  EXPECT_TRUE(enforcer_->Table()->Find(3)->active);
  EXPECT_TRUE(enforcer_->View().dirty.empty());
}

TEST_F(EnforcerOldNewsTest, AViewFromBeforeTheGrantTeachesNoOwner) {
  ASSERT_TRUE(Acquire({1, 3}).ok());
  Assign({1, 3}, "default/a");
  Turn();
  const AssignmentView before{*source_.answer, true};
  const absl::Duration started = clock_.Monotonic();
  Unassign({1, 3});
  clock_.Advance(absl::Seconds(1));
  ASSERT_TRUE(Acquire({1, 3}).ok());
  enforcer_->ObserveAssignments(before, started);
  EXPECT_FALSE(enforcer_->View().tenancies.at(0).record.owner.has_value());
}

TEST_F(EnforcerOldNewsTest, AnOwnerThatCouldNotBeWrittenIsKnownAllTheSame) {
  ASSERT_TRUE(Acquire({1, 3}).ok());
  Assign({1, 3}, "default/a");
  journal_.writes = absl::ResourceExhaustedError("disk full");
  clock_.Advance(absl::Seconds(20));
  List();
  EXPECT_EQ(enforcer_->View().tenancies.at(0).record.owner, (Owner{"pod", "default/a"}));
  EXPECT_FALSE(journal_.records.begin()->second.owner.has_value());
  journal_.writes = OkStatus();
  Turn();
  EXPECT_EQ(journal_.records.begin()->second.owner, (Owner{"pod", "default/a"}));
}

// Somebody else may have done it, and our own call be on its way.
TEST_F(EnforcerOldNewsTest, AnActivationThatOnlyTheListShowsGivesWayOnceItIsSettled) {
  fabric_.failures.push_back({absl::DeadlineExceededError("no answer"), true});
  EXPECT_FALSE(Acquire({1, 3}).ok());
  Probe();
  (void)events_.Take();
  EXPECT_EQ(Acquire({1}).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(events_.TakeNames(), ::testing::ElementsAre("tenancy_refused"));
  Turn();
  ASSERT_TRUE(Acquire({1}).ok());
  EXPECT_THAT(fabric_.calls, ::testing::ElementsAre("+3", "-3", "+7"));
}

}  // namespace
}  // namespace switchyard::tenancy
