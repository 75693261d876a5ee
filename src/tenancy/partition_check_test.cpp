// SPDX-License-Identifier: Apache-2.0
#include "tenancy/partition_check.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tenancy/testing/fakes.h"

namespace switchyard::tenancy {
namespace {

using testing::H100;
using testing::Pci;

PciAddress Gpu(int module) { return {0, static_cast<std::uint8_t>(0x50 - module), 0, 0}; }

FabricKnowledge Board(const std::vector<int>& active) {
  FabricKnowledge fabric;
  fabric.known = fabric.up = true;
  fabric::ModuleMap::Input input;
  for (int m = 1; m <= 8; ++m) input.nvml.emplace(Gpu(m), m);
  fabric.map = fabric::ModuleMap::Join(input);
  fabric.table = MakeTable(H100(active), fabric.map);
  return fabric;
}

PartitionCheck Check(const FabricKnowledge& fabric, const std::vector<int>& modules) {
  std::vector<PciAddress> gpus;
  for (const int m : modules) gpus.push_back(Gpu(m));
  return CheckPartition(fabric, gpus);
}

std::string Field(const Event& event, absl::string_view key) {
  for (const auto& [k, value] : event.fields) {
    if (k == key) return value;
  }
  return "(none)";
}

TEST(PartitionCheckTest, AnActivePartitionIsQuiet) {
  const PartitionCheck check = Check(Board({3}), {3, 1});
  EXPECT_EQ(check.partition, 3);
  EXPECT_FALSE(check.event.has_value());
}

TEST(PartitionCheckTest, AnInactiveOneIsTheOperatorsToActivate) {
  const PartitionCheck check = Check(Board({4}), {1, 3});
  EXPECT_EQ(check.partition, 3);
  ASSERT_TRUE(check.event.has_value());
  EXPECT_EQ(check.event->name, "partition_inactive");
  EXPECT_TRUE(absl::StrContains(check.event->message, "802")) << check.event->message;
  EXPECT_EQ(Field(*check.event, "partition"), "3");
}

TEST(PartitionCheckTest, ASetThatIsNoPartitionNamesTheNearest) {
  const PartitionCheck check = Check(Board({}), {4, 5});
  EXPECT_EQ(check.partition, std::nullopt);
  ASSERT_TRUE(check.event.has_value());
  EXPECT_EQ(check.event->name, "no_partition");
  EXPECT_EQ(check.event->severity, Severity::kWarning);
  EXPECT_EQ(Field(*check.event, "modules"), "4,5");
  EXPECT_EQ(Field(*check.event, "nearest"), "4 (2,4), 5 (5,7), 3 (1,3)");
}

TEST(PartitionCheckTest, ASizeThatNoPartitionHas) {
  const PartitionCheck check = Check(Board({}), {1, 2, 3});
  ASSERT_TRUE(check.event.has_value());
  EXPECT_TRUE(absl::StrContains(check.event->message, "no partition has 3 GPUs"))
      << check.event->message;
}

TEST(PartitionCheckTest, AnUnmappedGpuIsNamed) {
  const PciAddress stranger = Pci("0000:99:00.0");
  const std::vector<PciAddress> gpus = {Gpu(1), stranger};
  const PartitionCheck check = CheckPartition(Board({}), gpus);
  EXPECT_EQ(check.partition, std::nullopt) << "not partition 7, which is module 1 alone";
  ASSERT_TRUE(check.event.has_value());
  EXPECT_EQ(check.event->name, "no_partition");
  EXPECT_EQ(Field(*check.event, "unmapped"), "0000:99:00.0");
}

TEST(PartitionCheckTest, WithoutATableOrGpusThereIsNothingToSay) {
  FabricKnowledge unknown = Board({});
  unknown.known = false;
  EXPECT_FALSE(Check(unknown, {4, 5}).event.has_value());
  EXPECT_FALSE(Check(Board({}), {}).event.has_value());
}

TEST(PartitionCheckTest, AnIncompletePartitionIsNeverTheSet) {
  // FM's partition 0 is module 1 and a GPU that has no module id here.
  FabricKnowledge fabric = Board({});
  fabric.table = MakeTable(testing::ListOf({{0, {1, 40}}}), fabric.map);
  ASSERT_FALSE(fabric.table.partitions[0].complete);
  EXPECT_EQ(Check(fabric, {1}).partition, std::nullopt);
}

TEST(PartitionCheckTest, ManyGpusMakeABoundedMessage) {
  std::vector<PciAddress> gpus;
  for (int bus = 0; bus < 200; ++bus) {
    gpus.push_back({0, static_cast<std::uint8_t>(bus), 1, 0});
  }
  const PartitionCheck check = CheckPartition(Board({}), gpus);
  ASSERT_TRUE(check.event.has_value());
  EXPECT_LT(check.event->message.size(), 600u);
}

}  // namespace
}  // namespace switchyard::tenancy
