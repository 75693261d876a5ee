// SPDX-License-Identifier: Apache-2.0
// What the metrics count: what happened, not what was tried.
#include <gmock/gmock.h>

#include "tenancy/testing/enforcer_fixture.h"

namespace switchyard::tenancy {
namespace {

using testing::At;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class EnforcerCountsTest : public testing::EnforcerFixture {
 protected:
  EnforcerCountsTest() { Start(); }
};

TEST_F(EnforcerCountsTest, ChangesThatFailedAreFailuresOnly) {
  fabric_.failures.push_back({absl::InvalidArgumentError("not in the table"), false});
  fabric_.failures.push_back({OkStatus(), false});  // a success that the list does not show
  ASSERT_FALSE(Acquire({1, 3}).ok());
  ASSERT_FALSE(Acquire({2, 4}).ok());
  EXPECT_EQ(enforcer_->View().activations, 0u);
  EXPECT_THAT(enforcer_->View().fabric_failures,
              ElementsAre(Pair("activate INVALID_ARGUMENT", 1u), Pair("activate UNKNOWN", 1u)));

  const auto acquired = Acquire({5, 7});
  ASSERT_TRUE(acquired.ok());
  fabric_.failures.push_back({absl::InternalError("a fault"), false});
  ASSERT_FALSE(enforcer_->ReleaseById(acquired->tenancy, true).ok());
  EXPECT_EQ(enforcer_->View().activations, 1u);
  EXPECT_EQ(enforcer_->View().deactivations, 0u);
}

TEST_F(EnforcerCountsTest, AReleaseThatABusyGroupStopsIsNotCounted) {
  ASSERT_TRUE(Acquire({1, 3}).ok());
  holders_.busy.insert(At(3));
  Turns(20);
  EXPECT_THAT(enforcer_->View().actions, IsEmpty());
  holders_.busy.clear();
  Turns(20);
  EXPECT_THAT(enforcer_->View().actions, ElementsAre(Pair("release", 1u)));
  EXPECT_EQ(enforcer_->View().deactivations, 1u);
}

TEST_F(EnforcerCountsTest, AReleaseThatFailedIsNotCounted) {
  ASSERT_TRUE(Acquire({1, 3}).ok());
  fabric_.failures.push_back({absl::InvalidArgumentError("not in the table"), false});
  Turns(8);
  ASSERT_EQ(enforcer_->View().fabric_failures.size(), 1u);
  EXPECT_THAT(enforcer_->View().actions, IsEmpty());
  Turn();
  EXPECT_THAT(enforcer_->View().actions, ElementsAre(Pair("release", 1u)));
}

class OrphansTest : public EnforcerCountsTest {
 protected:
  OrphansTest() { EXPECT_TRUE(Acquire({1, 3}).ok()); }
  bool Orphaned() const { return enforcer_->View().tenancies.at(0).orphaned; }
};

TEST_F(OrphansTest, OneWhoseListWasNotReadSinceTheStartIsNone) {
  Assign({1, 3}, "default/a");
  Hold({1, 3});
  Turns(3);
  const auto kubelet = source_.answer;
  source_.answer = absl::UnavailableError("kubelet is down");
  Start();
  Turns(3);
  EXPECT_FALSE(Orphaned());
  source_.answer = kubelet;
  Turn();
  EXPECT_FALSE(Orphaned()) << "kubelet lists it";
  Unassign({1, 3});
  Turn();
  EXPECT_TRUE(Orphaned());
  holders_.held.clear();
  Turn();
  EXPECT_FALSE(Orphaned());
}

TEST_F(OrphansTest, OneWhoseOwnerWasNeverLearnedCounts) {
  Hold({1, 3});
  EXPECT_FALSE(Orphaned());
  Turns(2);
  EXPECT_TRUE(Orphaned());
}

}  // namespace
}  // namespace switchyard::tenancy
