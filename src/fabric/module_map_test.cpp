// SPDX-License-Identifier: Apache-2.0
#include "fabric/module_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace switchyard::fabric {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const PciAddress kA = PciAddress::Parse("0000:19:00.0").value();
const PciAddress kB = PciAddress::Parse("0000:3b:00.0").value();
const PciAddress kC = PciAddress::Parse("0000:4c:00.0").value();

TEST(ModuleMapJoin, SaysWhoNamedAnEntry) {
  ModuleMap::Input input;
  input.files = {{"/run/a.json", {{kA, 1}}}, {"/var/b.json", {{kA, 1}, {kB, 2}}}};
  input.nvml = {{kB, 2}, {kC, 3}};
  input.fabric_manager = {{kC, 3}};
  input.remembered = {{kA, 1}, {kC, 3}};
  const ModuleMap map = ModuleMap::Join(input);
  EXPECT_THAT(map.errors(), IsEmpty());
  ASSERT_EQ(map.entries().size(), 3u);
  EXPECT_THAT(map.entries().at(kA).sources, ElementsAre(MapSource::kFile, MapSource::kRemembered));
  EXPECT_EQ(map.entries().at(kA).origin, "/run/a.json");
  EXPECT_THAT(map.entries().at(kB).sources, ElementsAre(MapSource::kFile, MapSource::kNvml));
  EXPECT_EQ(map.entries().at(kB).origin, "/var/b.json");
  EXPECT_THAT(map.entries().at(kC).sources,
              ElementsAre(MapSource::kNvml, MapSource::kFabricManager, MapSource::kRemembered));
  EXPECT_EQ(map.ModuleOf(kC), 3);
  EXPECT_EQ(map.AddressOf(3), kC);
  EXPECT_EQ(map.AddressOf(4), std::nullopt);
}

TEST(ModuleMapJoin, LeavesOutAnAddressWithTwoModules) {
  ModuleMap::Input input;
  input.files = {{"/run/a.json", {{kA, 1}, {kC, 3}}}};
  input.nvml = {{kA, 2}};
  const ModuleMap map = ModuleMap::Join(input);
  EXPECT_EQ(map.ModuleOf(kA), std::nullopt);
  EXPECT_EQ(map.AddressOf(1), std::nullopt);
  EXPECT_EQ(map.AddressOf(2), std::nullopt);
  EXPECT_EQ(map.ModuleOf(kC), 3);  // the others go on
  EXPECT_THAT(map.errors(), ElementsAre(AllOf(HasSubstr("0000:19:00.0 = 1 (/run/a.json)"),
                                              HasSubstr("0000:19:00.0 = 2 (nvml)"))));
}

TEST(ModuleMapJoin, LeavesOutAModuleWithTwoAddresses) {
  ModuleMap::Input input;
  input.files = {{"/run/a.json", {{kA, 1}}}, {"/var/b.json", {{kB, 1}, {kC, 3}}}};
  const ModuleMap map = ModuleMap::Join(input);
  EXPECT_EQ(map.ModuleOf(kA), std::nullopt);
  EXPECT_EQ(map.ModuleOf(kB), std::nullopt);
  EXPECT_EQ(map.ModuleOf(kC), 3);
  EXPECT_THAT(map.errors(), ElementsAre(AllOf(HasSubstr("module 1 has two addresses"),
                                              HasSubstr("/run/a.json"), HasSubstr("/var/b.json"))));
}

TEST(ModuleMapJoin, AContradictionTakesAllWhoHaveAPartInIt) {
  // NVML says the file has two GPUs swapped over with a third: A's two modules leave B out as well.
  ModuleMap::Input input;
  input.files = {{"/run/a.json", {{kA, 1}, {kB, 2}}}};
  input.nvml = {{kA, 2}};
  const ModuleMap map = ModuleMap::Join(input);
  EXPECT_THAT(map.entries(), IsEmpty());
  EXPECT_EQ(map.errors().size(), 2u);
}

TEST(ModuleMapJoin, LeavesOutAnIdOutOfRange) {
  ModuleMap::Input input;
  input.nvml = {{kA, 0}, {kB, 17}, {kC, 16}};
  const ModuleMap map = ModuleMap::Join(input);
  EXPECT_EQ(map.entries().size(), 1u);
  EXPECT_EQ(map.ModuleOf(kC), 16);
  EXPECT_EQ(map.errors().size(), 2u);
}

TEST(ModuleMapJoin, MemoryFillsOnlyWhatNobodyNames) {
  ModuleMap::Input input;
  input.nvml = {{kA, 1}};
  // kA has moved, kB's module is somebody else's now; kC is nobody's.
  input.remembered = {{kA, 2}, {kB, 1}, {kC, 3}};
  const ModuleMap map = ModuleMap::Join(input);
  EXPECT_THAT(map.errors(), IsEmpty());
  EXPECT_EQ(map.ModuleOf(kA), 1);
  EXPECT_THAT(map.entries().at(kA).sources, ElementsAre(MapSource::kNvml));
  EXPECT_EQ(map.ModuleOf(kB), std::nullopt);
  EXPECT_EQ(map.ModuleOf(kC), 3);
  EXPECT_THAT(map.entries().at(kC).sources, ElementsAre(MapSource::kRemembered));
}

TEST(ModuleMapJoin, MemoryDoesNotSettleAContradiction) {
  ModuleMap::Input input;
  input.files = {{"/run/a.json", {{kA, 1}}}};
  input.nvml = {{kA, 2}};
  input.remembered = {{kA, 1}, {kB, 2}};
  EXPECT_THAT(ModuleMap::Join(input).entries(), IsEmpty());
}

FabricList ListOf(std::vector<std::pair<unsigned, std::optional<PciAddress>>> gpus) {
  FabricList list;
  int id = 0;
  for (const auto& [physical_id, address] : gpus) {
    FabricGpu gpu;
    gpu.physical_id = physical_id;
    gpu.address = address;
    list.partitions.push_back({.id = id++, .active = false, .gpus = {gpu}});
  }
  return list;
}

TEST(EntriesOf, TakesFabricManagersNumberingWhereNobodyElseKnows) {
  const FabricList list = ListOf({{1, kA}, {2, kB}, {1, kA}});
  EXPECT_EQ(EntriesOf(list, {}), (ModuleEntries{{kA, 1}, {kB, 2}}));
  // Somebody's word about another GPU, or a memory, does not matter.
  ModuleMap::Input others;
  others.nvml = {{kC, 1}};
  others.remembered = {{kA, 4}};
  EXPECT_EQ(EntriesOf(list, others).size(), 2u);
}

TEST(EntriesOf, DoesNotMixTwoNumberings) {
  const FabricList list = ListOf({{1, kA}, {2, kB}});
  ModuleMap::Input others;
  others.nvml = {{kB, 7}};
  EXPECT_THAT(EntriesOf(list, others), IsEmpty());
  others.nvml.clear();
  others.files = {{"/run/a.json", {{kA, 1}}}};
  EXPECT_THAT(EntriesOf(list, others), IsEmpty());
}

TEST(EntriesOf, IsEmptyWhereFabricManagerIsNoUse) {
  EXPECT_THAT(EntriesOf(ListOf({{1, std::nullopt}, {2, std::nullopt}}), {}), IsEmpty());
  EXPECT_THAT(EntriesOf(ListOf({{0, kA}, {1, kB}}), {}), IsEmpty());
  EXPECT_THAT(EntriesOf(ListOf({{16, kA}, {17, kB}}), {}), IsEmpty());
  EXPECT_THAT(EntriesOf(ListOf({{1, kA}, {2, kA}}), {}), IsEmpty());  // contradicts itself
}

}  // namespace
}  // namespace switchyard::fabric
