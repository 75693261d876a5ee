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
    Connect("v/gpu", "p.sock", {.preferred_available = true});
    table_.Update("v/gpu", {{"a", "Healthy", {0}}, {"b", "Unhealthy", {}}, {"c", "Healthy", {}}});
  }
  void Connect(const std::string& resource, const std::string& socket, PluginOptions options = {}) {
    EXPECT_TRUE(table_.Connect(resource, socket, std::make_shared<NoPlugin>(), options).ok());
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
  table_.Disconnect("v/gpu", "p.sock", absl::Seconds(10));
  EXPECT_THAT(gpu().healthy, IsEmpty());
  EXPECT_THAT(gpu().unhealthy, ElementsAre("a", "b", "c"));
  EXPECT_FALSE(gpu().connected());
  EXPECT_EQ(table_.RemoveExpired(absl::Seconds(11), kGrace), kGrace - absl::Seconds(1));
  ASSERT_NE(table_.Find("v/gpu"), nullptr);
  EXPECT_EQ(table_.RemoveExpired(absl::Seconds(10) + kGrace, kGrace), absl::InfiniteDuration());
  EXPECT_EQ(table_.Find("v/gpu"), nullptr);
}

TEST_F(ResourceTableTest, ANewRegistrationEndsTheGraceTimeAndKeepsTheOldDevicesUntilItsSnapshot) {
  table_.Disconnect("v/gpu", "p.sock", absl::Seconds(10));
  Connect("v/gpu", "p.sock");
  EXPECT_TRUE(gpu().connected());
  EXPECT_FALSE(gpu().options.preferred_available);
  EXPECT_THAT(gpu().unhealthy, ElementsAre("a", "b", "c"));
  EXPECT_EQ(table_.RemoveExpired(absl::Hours(1), kGrace), absl::InfiniteDuration());
  EXPECT_NE(table_.Find("v/gpu"), nullptr);
}

TEST_F(ResourceTableTest, TheEndOfOnePluginLeavesTheOtherAndTheDevices) {
  Connect("v/gpu", "q.sock");
  table_.Disconnect("v/gpu", "p.sock", absl::Seconds(10));
  EXPECT_TRUE(gpu().connected());
  EXPECT_FALSE(gpu().options.preferred_available);
  EXPECT_THAT(gpu().healthy, ElementsAre("a", "c"));
  table_.Disconnect("v/gpu", "p.sock", absl::Seconds(10));
  EXPECT_TRUE(gpu().connected()) << "it is not known any more";
  table_.Disconnect("v/gpu", "q.sock", absl::Seconds(10));
  EXPECT_FALSE(gpu().connected());
  EXPECT_THAT(gpu().healthy, IsEmpty());
}

TEST_F(ResourceTableTest, TheEndOfTheNewestPluginMakesAnotherTheOneThatIsCalled) {
  Connect("v/gpu", "q.sock");
  table_.Disconnect("v/gpu", "q.sock", absl::Seconds(10));
  EXPECT_TRUE(gpu().connected());
  EXPECT_TRUE(gpu().options.preferred_available);
  EXPECT_THAT(gpu().healthy, ElementsAre("a", "c"));
}

TEST_F(ResourceTableTest, AKnownSocketIsRefusedUnlessPluginsHaveNone) {
  const auto again = std::make_shared<NoPlugin>();
  EXPECT_EQ(table_.Connect("v/gpu", "p.sock", again, {}).message(),
            "device plugin already connected: p.sock");
  EXPECT_TRUE(gpu().options.preferred_available);
  Connect("v/other", "");
  Connect("v/other", "");
  table_.Disconnect("v/other", "", absl::Seconds(10));
  EXPECT_FALSE(table_.Find("v/other")->connected());
}

TEST_F(ResourceTableTest, ASnapshotDoesNotStartAStoppedEndpoint) {
  table_.Disconnect("v/gpu", "p.sock", absl::Seconds(10));
  table_.Update("v/gpu", {{"a", "Healthy", {}}});
  EXPECT_THAT(gpu().healthy, ElementsAre("a"));
  EXPECT_FALSE(gpu().connected());
  table_.RemoveExpired(absl::Seconds(10) + kGrace, kGrace);
  EXPECT_EQ(table_.Find("v/gpu"), nullptr);
}

TEST_F(ResourceTableTest, ASnapshotOfARemovedResourceIsRemovedAgain) {
  table_.Disconnect("v/gpu", "p.sock", absl::ZeroDuration());
  table_.RemoveExpired(kGrace, kGrace);
  table_.Update("v/gpu", {{"a", "Healthy", {}}});
  table_.RemoveExpired(kGrace, kGrace);
  EXPECT_EQ(table_.Find("v/gpu"), nullptr);
}

TEST_F(ResourceTableTest, ARestartKnowsTheResourcesOfTheCheckpointAndNothingOfThem) {
  Connect("v/other", "p.sock", {.preferred_available = true});
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
