// SPDX-License-Identifier: Apache-2.0
#include "agent/user_events.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include "kube/api/testing/service_account.h"
#include "tenancy/testing/fakes.h"

namespace switchyard::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class UserEventsTest : public ::testing::Test {
 protected:
  UserEventsTest() {
    config_.paths.service_account = account_.folder();
    config_.node_name = "n1";
    ::setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1", 1);
    ::setenv("KUBERNETES_SERVICE_PORT", "1", 1);
  }
  ~UserEventsTest() override {
    ::unsetenv("KUBERNETES_SERVICE_HOST");
    ::unsetenv("KUBERNETES_SERVICE_PORT");
  }

  kube::api::testing::ServiceAccount account_;
  Config config_;
  tenancy::testing::FakeEvents log_;
  SimClock clock_;
};

TEST_F(UserEventsTest, APodWithATokenHasThem) {
  const auto events = MakeUserEvents(config_, log_, clock_);
  ASSERT_NE(events, nullptr);
  events->sink().Report({"allocate", Severity::kInfo, "granted", {}});
  EXPECT_THAT(log_.TakeNames(), ElementsAre("allocate"));
}

TEST_F(UserEventsTest, NoPodAndNoTokenAreNothingToSpeakOf) {
  account_.Remove("token");
  EXPECT_EQ(MakeUserEvents(config_, log_, clock_), nullptr);
  account_.Write("token", "t");
  ::unsetenv("KUBERNETES_SERVICE_HOST");
  EXPECT_EQ(MakeUserEvents(config_, log_, clock_), nullptr);
  EXPECT_THAT(log_.TakeNames(), IsEmpty());
}

TEST_F(UserEventsTest, WhatIsMissingIsSaid) {
  config_.node_name.clear();
  EXPECT_EQ(MakeUserEvents(config_, log_, clock_), nullptr);
  config_.node_name = "n1";
  ::setenv("KUBERNETES_SERVICE_PORT", "https", 1);
  EXPECT_EQ(MakeUserEvents(config_, log_, clock_), nullptr);
  EXPECT_THAT(log_.TakeNames(),
              ElementsAre("kubernetes_events_failed", "kubernetes_events_failed"));
}

TEST(UserEventGauges, SayWhatWasSentAndWhetherTheServerTakesThem) {
  const auto before = MakeUserEventGauges({3, 2, std::nullopt});
  ASSERT_THAT(before, SizeIs(1));
  EXPECT_TRUE(before[0].counter);
  EXPECT_EQ(before[0].samples[0].value, 3);
  EXPECT_EQ(before[0].samples[1].value, 2);
  const auto after = MakeUserEventGauges({3, 2, false});
  ASSERT_THAT(after, SizeIs(2));
  EXPECT_EQ(after[1].name, "switchyard_kubernetes_events_up");
  EXPECT_EQ(after[1].samples[0].value, 0);
}

}  // namespace
}  // namespace switchyard::agent
