// SPDX-License-Identifier: Apache-2.0
#include "fabric/partition_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fabric/module_map.h"

namespace switchyard::fabric {
namespace {

using ::testing::HasSubstr;

PciAddress Address(int bus) {
  return {.domain = 0, .bus = static_cast<std::uint8_t>(bus), .device = 0, .function = 0};
}

FabricGpu Gpu(unsigned physical_id) {
  FabricGpu gpu;
  gpu.physical_id = physical_id;
  return gpu;
}

FabricGpu GpuAt(unsigned physical_id, int bus) {
  FabricGpu gpu = Gpu(physical_id);
  gpu.address = Address(bus);
  return gpu;
}

void ExpectRefused(const FabricList& list, absl::string_view what) {
  const Status status = list.Validate();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(what)));
}

TEST(FabricListValidate, AcceptsWhatFabricManagerMaySay) {
  FabricList list;
  EXPECT_TRUE(list.Validate().ok());
  // At the limits, and physical ids far from module ids.
  for (int id = 0; id < kMaxPartitions; ++id) {
    FabricPartition partition{.id = id * 3, .active = id % 2 == 0, .gpus = {}};
    for (unsigned gpu = 0; gpu < 16; ++gpu) partition.gpus.push_back(Gpu(100 + gpu));
    list.partitions.push_back(partition);
  }
  EXPECT_TRUE(list.Validate().ok());
}

TEST(FabricListValidate, RefusesMoreThan64Partitions) {
  FabricList list;
  for (int id = 0; id < 65; ++id)
    list.partitions.push_back({.id = id, .active = false, .gpus = {Gpu(1)}});
  ExpectRefused(list, "65 partitions");
}

TEST(FabricListValidate, RefusesMoreThan16Gpus) {
  FabricList list;
  list.partitions.push_back({.id = 7, .active = false, .gpus = {}});
  for (unsigned gpu = 0; gpu < 17; ++gpu) list.partitions[0].gpus.push_back(Gpu(gpu));
  ExpectRefused(list, "partition 7 with 17 GPUs");
}

TEST(FabricListValidate, RefusesAnIdTwice) {
  FabricList list;
  list.partitions = {{.id = 5, .active = false, .gpus = {Gpu(1)}},
                     {.id = 5, .active = false, .gpus = {Gpu(2)}}};
  ExpectRefused(list, "partition 5 twice");
}

TEST(FabricListValidate, RefusesAnEmptyPartition) {
  FabricList list;
  list.partitions = {{.id = 5, .active = false, .gpus = {}}};
  ExpectRefused(list, "partition 5 without a GPU");
}

TEST(FabricListValidate, RefusesAGpuTwiceByAnyOfItsNames) {
  FabricList list;
  list.partitions = {{.id = 5, .active = false, .gpus = {Gpu(3), Gpu(3)}}};
  ExpectRefused(list, "physical id 3 twice in partition 5");
  list.partitions[0].gpus = {GpuAt(1, 0x19), GpuAt(2, 0x19)};
  ExpectRefused(list, "0000:19:00.0 twice in partition 5");
  list.partitions[0].gpus = {Gpu(1), Gpu(2)};
  for (FabricGpu& gpu : list.partitions[0].gpus) gpu.uuid = "GPU-1";
  ExpectRefused(list, "GPU-1 twice in partition 5");
}

TEST(MakeTable, TakesThePhysicalIdAsModuleWhereThereIsNoAddress) {
  FabricList list;
  list.partitions = {{.id = 9, .active = true, .gpus = {Gpu(2), Gpu(16)}},
                     {.id = 4, .active = false, .gpus = {Gpu(2)}}};
  const PartitionTable table = MakeTable(list, ModuleMap());
  ASSERT_EQ(table.partitions.size(), 2u);
  EXPECT_EQ(table.partitions[0].id, 4);  // ascending
  EXPECT_EQ(table.partitions[1].modules, (ModuleSet{2, 16}));
  EXPECT_TRUE(table.partitions[1].active);
  EXPECT_TRUE(table.partitions[1].complete);
  EXPECT_EQ(table.modules, (ModuleSet{2, 16}));
  ASSERT_NE(table.Find(9), nullptr);
  EXPECT_EQ(table.Find(9)->id, 9);
  EXPECT_EQ(table.Find(5), nullptr);
}

TEST(MakeTable, AnIdThatIsNoModuleMakesThePartitionIncomplete) {
  for (unsigned id : {0u, 17u, 4294967295u}) {
    FabricList list;
    list.partitions = {{.id = 1, .active = false, .gpus = {Gpu(2), Gpu(id)}}};
    const PartitionTable table = MakeTable(list, ModuleMap());
    EXPECT_FALSE(table.partitions[0].complete) << id;
    EXPECT_EQ(table.partitions[0].modules, ModuleSet{2}) << id;
  }
}

TEST(MakeTable, AnAddressGoesThroughTheMapWhateverThePhysicalId) {
  ModuleMap::Input input;
  input.nvml = {{Address(0x19), 5}};
  const ModuleMap map = ModuleMap::Join(input);
  FabricList list;
  list.partitions = {{.id = 1, .active = false, .gpus = {GpuAt(8, 0x19)}},
                     {.id = 2, .active = false, .gpus = {GpuAt(8, 0x19), GpuAt(3, 0x20)}}};
  const PartitionTable table = MakeTable(list, map);
  EXPECT_TRUE(table.partitions[0].complete);
  EXPECT_EQ(table.partitions[0].modules, ModuleSet{5});
  // Its physical id 3 is in range, and still no module id: the address has none.
  EXPECT_FALSE(table.partitions[1].complete);
  EXPECT_EQ(table.partitions[1].modules, ModuleSet{5});
}

TEST(MakeTable, TwoGpusOnOneModuleMakeThePartitionIncomplete) {
  ModuleMap::Input input;
  input.nvml = {{Address(0x19), 5}};
  FabricList list;
  list.partitions = {{.id = 1, .active = false, .gpus = {GpuAt(8, 0x19), Gpu(5)}}};
  EXPECT_FALSE(MakeTable(list, ModuleMap::Join(input)).partitions[0].complete);
}

}  // namespace
}  // namespace switchyard::fabric
