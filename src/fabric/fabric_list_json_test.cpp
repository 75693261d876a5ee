// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "fabric/partition_table.h"

namespace switchyard::fabric {
namespace {

using ::testing::HasSubstr;

constexpr absl::string_view kGood =
    R"({"maxPartitions":15,"partitions":[{"id":3,"active":true,"gpus":[{"physicalId":1,)"
    R"("nvlinksAvailable":18,"nvlinksMax":18,"lineRateMBps":26562,"uuid":"GPU-a",)"
    R"("address":"0000:19:00.0"}]}]})";

void ExpectRefused(const std::string& text, const std::string& what) {
  const auto list = FabricListFromJson(text);
  ASSERT_FALSE(list.ok()) << text.substr(0, 200);
  EXPECT_THAT(std::string(list.status().message()), HasSubstr(what));
}

std::string With(absl::string_view from, absl::string_view to) {
  const std::string text = absl::StrReplaceAll(kGood, {{from, to}});
  EXPECT_NE(text, kGood) << from;
  return text;
}

TEST(FabricListJson, ReadsEveryField) {
  const auto list = FabricListFromJson(kGood);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(list->max_partitions, 15);
  ASSERT_EQ(list->partitions.size(), 1u);
  EXPECT_EQ(list->partitions[0].id, 3);
  EXPECT_TRUE(list->partitions[0].active);
  const FabricGpu& gpu = list->partitions[0].gpus.at(0);
  EXPECT_EQ(gpu.physical_id, 1u);
  EXPECT_EQ(gpu.uuid, "GPU-a");
  EXPECT_EQ(gpu.address, *PciAddress::Parse("19:00.0"));
  EXPECT_EQ(gpu.nvlinks_available, 18u);
  EXPECT_EQ(gpu.nvlinks_max, 18u);
  EXPECT_EQ(gpu.line_rate_mbps, 26562u);
}

TEST(FabricListJson, ComesBackAsItWasWritten) {
  FabricList list;
  list.max_partitions = 64;
  for (int id = 0; id < 64; ++id) {
    FabricPartition partition{.id = 2147483647 - id, .active = id % 3 == 0, .gpus = {}};
    for (unsigned i = 0; i < 16; ++i) {
      FabricGpu gpu;
      gpu.physical_id = 4294967295u - i;
      gpu.nvlinks_available = i;
      gpu.nvlinks_max = 18;
      if (id % 2 == 0) gpu.uuid = absl::StrCat("GPU-\"\\\n", i);
      if (id % 2 == 1)
        gpu.address = PciAddress{
            .domain = 0x10000, .bus = 1, .device = 2, .function = static_cast<std::uint8_t>(i % 8)};
      if (id % 2 == 1 && i >= 8) gpu.address.reset();
      partition.gpus.push_back(gpu);
    }
    list.partitions.push_back(partition);
  }
  const auto back = FabricListFromJson(FabricListToJson(list));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, list);
  EXPECT_EQ(FabricListFromJson(FabricListToJson(FabricList())).value(), FabricList());
}

TEST(FabricListJson, BytesThatAreNoTextDoNotThrow) {
  FabricList list;
  list.partitions = {{.id = 1, .active = false, .gpus = {FabricGpu()}}};
  list.partitions[0].gpus[0].uuid = "GPU-\xff\xfe";
  EXPECT_TRUE(FabricListFromJson(FabricListToJson(list)).ok());
}

TEST(FabricListJson, RefusesWhatValidateRefuses) {
  const std::string gpu =
      R"({"physicalId":1,"nvlinksAvailable":0,"nvlinksMax":0,"lineRateMBps":0})";
  const auto partition = [&](int id) {
    return absl::StrCat(R"({"id":)", id, R"(,"active":false,"gpus":[)", gpu, "]}");
  };
  ExpectRefused(
      absl::StrCat(R"({"maxPartitions":2,"partitions":[)", partition(1), ",", partition(1), "]}"),
      "partition 1 twice");
  ExpectRefused(R"({"maxPartitions":2,"partitions":[{"id":1,"active":false,"gpus":[]}]})",
                "without a GPU");
}

TEST(FabricListJson, RefusesWhatIsNotExactlyTheFormat) {
  ExpectRefused("", "not valid JSON");
  ExpectRefused("[]", "top level");
  ExpectRefused("{}", "\"maxPartitions\" is missing");
  ExpectRefused(std::string(kGood.substr(0, 40)), "not valid JSON");
  ExpectRefused(absl::StrCat(kGood, "{}"), "not valid JSON");
  ExpectRefused(With("\"active\":true", "\"active\":1"), "partitions[0].active: must be true");
  ExpectRefused(With("\"active\":true,", ""), "partitions[0]: key \"active\" is missing");
  ExpectRefused(With("\"id\":3", "\"id\":3,\"ID\":3"), "partitions[0]: unknown key \"ID\"");
  ExpectRefused(With("\"id\":3", "\"id\":3,\"id\":4"), "key \"id\" appears twice");
  ExpectRefused(With("\"id\":3", "\"id\":3.0"), "partitions[0].id: must be a whole number");
  ExpectRefused(With("\"id\":3", "\"id\":2147483648"), "partitions[0].id: must be a whole number");
  ExpectRefused(With("\"id\":3", "\"id\":18446744073709551615"), "must be a whole number");
  ExpectRefused(With("\"physicalId\":1", "\"physicalId\":-1"),
                "partitions[0].gpus[0].physicalId: must be a whole number");
  ExpectRefused(With("0000:19:00.0", "19"), "partitions[0].gpus[0].address: \"19\" is no PCI");
  ExpectRefused(With("GPU-a", std::string(81, 'x')), "uuid: must be at most 80 bytes");
  ExpectRefused(With("\"gpus\":[", "\"gpus\":[1,"), "partitions[0].gpus[0]: must be an object");
}

TEST(FabricListJson, RefusesHugeAndDeepText) {
  ExpectRefused(std::string(1024 * 1024 + 1, ' '), "more than");
  ExpectRefused(std::string(1000 * 1000, '['), "nested deeper");
}

}  // namespace
}  // namespace switchyard::fabric
