// SPDX-License-Identifier: Apache-2.0
#include "sim/kubelet/topology.h"

#include <gmock/gmock.h>

namespace switchyard::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

// Two nodes with two devices each.
const std::map<std::string, PluginDevice> kDevices = {{"a", {"a", "Healthy", {0}}},
                                                      {"b", {"b", "Healthy", {0}}},
                                                      {"c", {"c", "Healthy", {1}}},
                                                      {"d", {"d", "Healthy", {1}}}};
const DeviceIds kAll = {"a", "b", "c", "d"};

Result<std::optional<NumaNodes>> Merge(TopologyPolicy policy, const DeviceIds& available,
                                       int required, const DeviceIds& reusable = {}) {
  return MergeHints(policy, {MakeHints(kDevices, available, reusable, required)});
}

TEST(TopologyTest, TheLowestNodeThatHasEnoughIsTaken) {
  for (const TopologyPolicy policy : {TopologyPolicy::kBestEffort, TopologyPolicy::kRestricted,
                                      TopologyPolicy::kSingleNumaNode}) {
    EXPECT_THAT(*Merge(policy, kAll, 2), Optional(ElementsAre(0)));
    EXPECT_THAT(*Merge(policy, {"a", "c", "d"}, 2), Optional(ElementsAre(1)));
  }
}

TEST(TopologyTest, ManyDevicesNeedBothNodesAndOnlySingleRefusesThat) {
  EXPECT_THAT(*Merge(TopologyPolicy::kRestricted, kAll, 3), Optional(ElementsAre(0, 1)));
  EXPECT_TRUE(IsTopologyError(Merge(TopologyPolicy::kSingleNumaNode, kAll, 3).status()));
}

TEST(TopologyTest, FewDevicesThatAreSpreadAreForBestEffortOnly) {
  const DeviceIds spread = {"a", "c"};
  EXPECT_THAT(*Merge(TopologyPolicy::kBestEffort, spread, 2), Optional(ElementsAre(0, 1)));
  EXPECT_TRUE(IsTopologyError(Merge(TopologyPolicy::kRestricted, spread, 2).status()));
  EXPECT_TRUE(IsTopologyError(Merge(TopologyPolicy::kSingleNumaNode, spread, 2).status()));
}

TEST(TopologyTest, ReusableDevicesDecideTheNode) {
  EXPECT_THAT(*Merge(TopologyPolicy::kRestricted, {"a", "b", "d"}, 2, {"c"}),
              Optional(ElementsAre(1)));
}

TEST(TopologyTest, TooFewDevicesAreAnErrorOfWhoNeedsAlignment) {
  EXPECT_THAT(MakeHints(kDevices, {"a"}, {}, 2), IsEmpty());
  EXPECT_EQ(*Merge(TopologyPolicy::kBestEffort, {"a"}, 2), std::nullopt);
  EXPECT_TRUE(IsTopologyError(Merge(TopologyPolicy::kRestricted, {"a"}, 2).status()));
}

TEST(TopologyTest, ResourcesAgreeOnANode) {
  const TopologyHints any = MakeHints({{"x", {"x", "Healthy", {}}}}, {"x"}, {}, 1);
  const TopologyHints one = MakeHints(kDevices, {"c", "d"}, {}, 1);
  const TopologyHints both = MakeHints(kDevices, kAll, {}, 1);
  EXPECT_THAT(*MergeHints(TopologyPolicy::kSingleNumaNode, {any, both, one}),
              Optional(ElementsAre(1)));
  EXPECT_EQ(*MergeHints(TopologyPolicy::kSingleNumaNode, {any}), std::nullopt);
}

TEST(TopologyTest, PoliciesHaveKubeletsNames) {
  EXPECT_EQ(*ParseTopologyPolicy(""), TopologyPolicy::kNone);
  EXPECT_EQ(*ParseTopologyPolicy("best-effort"), TopologyPolicy::kBestEffort);
  EXPECT_TRUE(absl::IsInvalidArgument(ParseTopologyPolicy("numa").status()));
}

}  // namespace
}  // namespace switchyard::sim
