// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/files.h"
#include "fabric/partition_table.h"

namespace switchyard::fabric {
namespace {

using ::testing::HasSubstr;

PartitionTable Published(const std::string& name) {
  const std::string path = absl::StrCat(SWITCHYARD_SOURCE_DIR "/sim/boards/", name, ".json");
  return ParseBoard(ReadFile(path, 1 << 20).value(), path).value();
}

TEST(ParseBoard, ReadsThePublishedBoards) {
  const PartitionTable h100 = Published("hgx-h100");
  EXPECT_EQ(h100.partitions.size(), 15u);
  EXPECT_EQ(h100.modules, ModuleSet::FirstN(8));
  ASSERT_NE(h100.Find(3), nullptr);
  EXPECT_EQ(h100.Find(3)->modules, (ModuleSet{1, 3}));
  EXPECT_FALSE(h100.Find(3)->active);
  EXPECT_TRUE(h100.Find(3)->complete);

  const PartitionTable b200 = Published("hgx-b200");
  EXPECT_EQ(b200.Find(0), nullptr);
  EXPECT_EQ(b200.Find(1)->modules, ModuleSet::FirstN(8));

  EXPECT_EQ(Published("hgx-a100-16").Find(5)->modules, (ModuleSet{1, 2, 3, 4, 13, 14, 15, 16}));
  EXPECT_EQ(Published("hgx-2").modules, ModuleSet::FirstN(16));
}

constexpr absl::string_view kGood =
    R"({"board":"x","description":"d","note":"n","gpuIdentity":"module","returnCodes":"hopper",)"
    R"("nvlinkLineRateMBps":1,"nvlinksPerGpu":18,"devices":[{"module":1}],)"
    R"("partitions":[{"id":4,"gpus":[2,1]},{"id":3,"gpus":[1],"nvlinksPerGpu":0}]})";

TEST(ParseBoard, TakesTheOptionalKeysAndSortsById) {
  const auto table = ParseBoard(kGood, "x.json");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->partitions[0].id, 3);
  EXPECT_EQ(table->partitions[1].id, 4);
  EXPECT_EQ(table->partitions[1].modules, (ModuleSet{1, 2}));
}

void ExpectRefused(absl::string_view from, absl::string_view to, const std::string& what) {
  const std::string text = absl::StrReplaceAll(kGood, {{from, to}});
  ASSERT_NE(text, kGood) << from;
  const auto table = ParseBoard(text, "x.json");
  EXPECT_EQ(table.status().code(), absl::StatusCode::kInvalidArgument) << to;
  EXPECT_THAT(std::string(table.status().message()), HasSubstr("x.json: "));
  EXPECT_THAT(std::string(table.status().message()), HasSubstr(what));
}

TEST(ParseBoard, NamesFileKeyAndRule) {
  ExpectRefused("\"board\":\"x\",", "", "key \"board\" is missing");
  ExpectRefused("\"board\":\"x\"", "\"board\":1", "board: must be a string");
  ExpectRefused("\"note\":\"n\"", "\"notes\":\"n\"", "unknown key \"notes\"");
  ExpectRefused("\"note\":\"n\"", "\"note\":[]", "note: must be a string");
  ExpectRefused("[{\"module\":1}]", "{}", "devices: must be an array");
  ExpectRefused("\"id\":3", "\"id\":4", "partitions[1]: id 4 appears twice");
  ExpectRefused("\"id\":3", "\"id\":-1", "partitions[1].id: must be a whole number");
  ExpectRefused("\"id\":3", "\"id\":3,\"size\":1", "partitions[1]: unknown key \"size\"");
  ExpectRefused("[2,1]", "[2,2]", "partitions[0].gpus: module 2 appears twice");
  ExpectRefused("[2,1]", "[]", "partitions[0].gpus: must name at least one");
  ExpectRefused("[2,1]", "[0]", "partitions[0].gpus: each must be a module id");
  ExpectRefused("[2,1]", "[17]", "each must be a module id");
  ExpectRefused("[2,1]", "[4294967297]", "each must be a module id");
  ExpectRefused("[2,1]", "[1.0]", "each must be a module id");
  ExpectRefused("[2,1]", "[\"1\"]", "each must be a module id");
  ExpectRefused("[2,1]", "1", "partitions[0].gpus: must be an array");
  ExpectRefused("\"nvlinksPerGpu\":0", "\"nvlinksPerGpu\":\"0\"", "must be a whole number");
  ExpectRefused("0}]}", "0}]", "not valid JSON");
}

TEST(ParseBoard, RefusesMoreThan64Partitions) {
  std::string text = R"({"board":"x","partitions":[)";
  for (int id = 0; id < 65; ++id)
    absl::StrAppend(&text, id == 0 ? "" : ",", R"({"id":)", id, R"(,"gpus":[1]})");
  absl::StrAppend(&text, "]}");
  EXPECT_THAT(std::string(ParseBoard(text, "x.json").status().message()),
              HasSubstr("65 partitions, but 64 is the limit"));
}

}  // namespace
}  // namespace switchyard::fabric
