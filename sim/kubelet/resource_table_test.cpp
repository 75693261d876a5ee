// SPDX-License-Identifier: Apache-2.0
#include "sim/kubelet/resource_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace switchyard::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr absl::Duration kGrace = absl::Minutes(5);

class NoPlugin final : public PluginEndpoint {
  Result<std::vector<std::string>> GetPreferredAllocation(const PreferredRequest&) override {
    return absl::UnimplementedError("");
  }
  Result<std::optional<AllocateAnswer>> Allocate(const std::vector<std::string>&) override {
    return absl::UnimplementedError("");
  }
  Status PreStartContainer(const std::vector<std::string>&) override {
    return absl::UnimplementedError("");
  }
};

class ResourceTableTest : public ::testing::Test {
 protected:
  ResourceTableTest() {
    table_.Connect("v/gpu", std::make_shared<NoPlugin>(), {.preferred_available = true});
    table_.Update("v/gpu", {{"a", "Healthy", {0}}, {"b", "Unhealthy", {}}, {"c", "Healthy", {}}});
  }
  const Resource& gpu() { return *table_.Find("v/gpu"); }

  ResourceTable table_;
};

TEST_F(ResourceTableTest, ASnapshotIsComplete) {
  EXPECT_THAT(gpu().healthy, ElementsAre("a", "c"));
  EXPECT_THAT(gpu().unhealthy, ElementsAre("b"));
  EXPECT_TRUE(gpu().has_topology());
  table_.Update("v/gpu", {{"b", "Healthy", {}}});
  EXPECT_THAT(gpu().healthy, ElementsAre("b"));
  EXPECT_THAT(gpu().unhealthy, IsEmpty());
  EXPECT_FALSE(gpu().has_topology());
}

TEST_F(ResourceTableTest, OnlyTheExactWordIsHealthy) {
  table_.Update("v/gpu", {{"a", "healthy", {}}, {"b", "", {}}, {"c", "Healthy", {}}});
  EXPECT_THAT(gpu().healthy, ElementsAre("c"));
  EXPECT_THAT(gpu().unhealthy, ElementsAre("a", "b"));
}

TEST_F(ResourceTableTest, OneIdWithBothHealthsCountsTwice) {
  table_.Update("v/gpu", {{"a", "Healthy", {}}, {"a", "Unhealthy", {}}, {"a", "Healthy", {}}});
  EXPECT_THAT(gpu().healthy, ElementsAre("a"));
  EXPECT_THAT(gpu().unhealthy, ElementsAre("a"));
}

TEST_F(ResourceTableTest, AnEndedStreamLeavesUnhealthyDevicesForTheGraceTime) {
  table_.Disconnect("v/gpu", absl::Seconds(10));
  EXPECT_THAT(gpu().healthy, IsEmpty());
  EXPECT_THAT(gpu().unhealthy, ElementsAre("a", "b", "c"));
  EXPECT_FALSE(gpu().connected());
  EXPECT_EQ(table_.RemoveExpired(absl::Seconds(11), kGrace), kGrace - absl::Seconds(1));
  ASSERT_NE(table_.Find("v/gpu"), nullptr);
  EXPECT_EQ(table_.RemoveExpired(absl::Seconds(10) + kGrace, kGrace), absl::InfiniteDuration());
  EXPECT_EQ(table_.Find("v/gpu"), nullptr);
}

TEST_F(ResourceTableTest, ANewRegistrationEndsTheGraceTimeAndKeepsTheOldDevicesUntilItsSnapshot) {
  table_.Disconnect("v/gpu", absl::Seconds(10));
  table_.Connect("v/gpu", std::make_shared<NoPlugin>(), {});
  EXPECT_TRUE(gpu().connected());
  EXPECT_FALSE(gpu().options.preferred_available);
  EXPECT_THAT(gpu().unhealthy, ElementsAre("a", "b", "c"));
  EXPECT_EQ(table_.RemoveExpired(absl::Hours(1), kGrace), absl::InfiniteDuration());
  EXPECT_NE(table_.Find("v/gpu"), nullptr);
}

// An old stream that ends after a new registration: kubelet stops the new endpoint, and a later
// snapshot brings back the devices but not the endpoint.
TEST_F(ResourceTableTest, ASnapshotDoesNotStartAStoppedEndpoint) {
  table_.Disconnect("v/gpu", absl::Seconds(10));
  table_.Update("v/gpu", {{"a", "Healthy", {}}});
  EXPECT_THAT(gpu().healthy, ElementsAre("a"));
  EXPECT_FALSE(gpu().connected());
  table_.RemoveExpired(absl::Seconds(10) + kGrace, kGrace);
  EXPECT_EQ(table_.Find("v/gpu"), nullptr);
}

TEST_F(ResourceTableTest, ASnapshotOfARemovedResourceIsRemovedAgain) {
  table_.Disconnect("v/gpu", absl::ZeroDuration());
  table_.RemoveExpired(kGrace, kGrace);
  table_.Update("v/gpu", {{"a", "Healthy", {}}});
  table_.RemoveExpired(kGrace, kGrace);
  EXPECT_EQ(table_.Find("v/gpu"), nullptr);
}

TEST_F(ResourceTableTest, ARestartKnowsTheResourcesOfTheCheckpointAndNothingOfThem) {
  table_.Connect("v/other", std::make_shared<NoPlugin>(), {.preferred_available = true});
  table_.Restore({"v/gpu"}, absl::Seconds(10));
  EXPECT_TRUE(gpu().listed);
  EXPECT_FALSE(gpu().options.preferred_available);
  EXPECT_FALSE(gpu().connected());
  EXPECT_THAT(gpu().healthy, IsEmpty());
  EXPECT_THAT(gpu().unhealthy, IsEmpty());
  EXPECT_EQ(table_.Find("v/other"), nullptr);
  EXPECT_EQ(table_.RemoveExpired(absl::Seconds(10), kGrace), kGrace);
}

}  // namespace
}  // namespace switchyard::sim
