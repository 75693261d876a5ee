// SPDX-License-Identifier: Apache-2.0
// `switchyard plan` as a user and a script see it: its JSON is a contract.
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "apps/testing/run_program.h"

namespace switchyard::apps {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Ran;
using testing::RunSwitchyard;
using testing::TemporaryFolder;

std::string Board(const std::string& name) {
  return absl::StrCat(SWITCHYARD_SOURCE_DIR, "/sim/boards/", name, ".json");
}

std::vector<std::string> WithBoard(const std::string& board, std::vector<std::string> more) {
  std::vector<std::string> arguments = {"plan", "--board", Board(board), "-o", "json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

// The JSON of a plan that must succeed.
json Plan(const std::string& board, std::vector<std::string> more) {
  const Ran ran = RunSwitchyard(WithBoard(board, std::move(more)));
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.err, "");
  return json::parse(ran.out, nullptr, false);
}

std::vector<int> CandidateIds(const json& plan) {
  std::vector<int> ids;
  for (const json& candidate : plan["candidates"]) ids.push_back(candidate["partition"]);
  return ids;
}

TEST(PlanCliTest, JsonHasExactlyTheContractsKeys) {
  const json plan = Plan("hgx-h100", {"--size", "2", "--free", "1,2,3,4,5,6", "--active", "5"});
  ASSERT_EQ(plan.size(), 3u);
  ASSERT_EQ(plan["choice"].size(), 2u);
  EXPECT_EQ(plan["choice"]["partition"], 3);
  EXPECT_EQ(plan["choice"]["modules"], json({1, 3}));
  EXPECT_TRUE(plan["reason"].is_string());
  EXPECT_THAT(CandidateIds(plan), ElementsAre(3, 4));
  for (const json& candidate : plan["candidates"]) {
    EXPECT_EQ(candidate.size(), 3u);
    EXPECT_TRUE(candidate["why"].is_string());
    EXPECT_TRUE(candidate["modules"].is_array());
  }
  EXPECT_EQ(plan["reason"], plan["candidates"][0]["why"]);
}

TEST(PlanCliTest, NothingFitsIsNoFailure) {
  const json plan = Plan("hgx-h100", {"--size", "3"});
  EXPECT_TRUE(plan["choice"].is_null());
  EXPECT_THAT(plan["reason"].get<std::string>(), HasSubstr("no partition has 3 GPUs"));
  EXPECT_EQ(plan["candidates"], json::array());
  EXPECT_TRUE(Plan("hgx-h100", {"--size", "0"})["choice"].is_null());
  EXPECT_TRUE(Plan("hgx-h100", {"--size", "2", "--free", ""})["choice"].is_null());
}

TEST(PlanCliTest, MustIncludeThatIsNotFreeLeavesNoCandidate) {
  const json plan = Plan("hgx-h100", {"--size", "2", "--free", "1,3,5,7", "--must-include", "2"});
  EXPECT_TRUE(plan["choice"].is_null());
  EXPECT_EQ(plan["candidates"], json::array());
}

TEST(PlanCliTest, OverlappingActivePartitionsAreValid) {
  const json plan = Plan("hgx-h100", {"--size", "2", "--active", "0,1,3"});
  EXPECT_EQ(plan["choice"]["partition"], 3);
}

TEST(PlanCliTest, EveryBoardPlansAllItsSizes) {
  const std::map<std::string, std::set<int>> sizes = {{"hgx-h100", {1, 2, 4, 8}},
                                                      {"hgx-b200", {1, 2, 4, 8}},
                                                      {"hgx-a100-16", {1, 2, 4, 8, 16}},
                                                      {"hgx-2", {1, 2, 4, 8, 16}}};
  for (const auto& [board, expected] : sizes) {
    for (const int size : expected) {
      const json plan = Plan(board, {"--size", absl::StrCat(size)});
      ASSERT_TRUE(plan["choice"].is_object()) << board << " " << size;
      const std::vector<int> modules = plan["choice"]["modules"];
      EXPECT_EQ(modules.size(), static_cast<size_t>(size)) << board;
      EXPECT_TRUE(std::is_sorted(modules.begin(), modules.end())) << board;
    }
  }
  EXPECT_EQ(Plan("hgx-b200", {"--size", "8"})["choice"]["partition"], 1);  // ids start at 1 there
}

TEST(PlanCliTest, WithAMapDevicesFollowTheModules) {
  const TemporaryFolder folder;
  const std::string map = folder.Write(
      "map.json",
      R"({"00000000:0F:00.0": 5, "0000:10:00.0": "7", "44:00.0": 8, "0000:41:00.0": 6})");
  const json plan = Plan("hgx-h100", {"--size", "2", "--map", map, "--must-include", "10:00.0"});
  EXPECT_EQ(plan["choice"]["partition"], 5);
  EXPECT_EQ(plan["choice"]["devices"], json({"0000:0f:00.0", "0000:10:00.0"}));
  // Module ids and addresses, mixed; a module without an address is never chosen.
  const json mixed = Plan("hgx-h100", {"--size", "2", "--map", map, "--free", "0000:41:00.0,8"});
  EXPECT_EQ(mixed["choice"]["devices"], json({"0000:41:00.0", "0000:44:00.0"}));
  EXPECT_TRUE(Plan("hgx-h100", {"--size", "4", "--map", map})["choice"].is_object());
  EXPECT_TRUE(Plan("hgx-h100", {"--size", "8", "--map", map})["choice"].is_null());
}

TEST(PlanCliTest, TextNamesPartitionReasonAndCandidates) {
  const Ran ran = RunSwitchyard(
      {"plan", "--board", Board("hgx-h100"), "--size", "2", "--active", "6", "--explain"});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_THAT(ran.out, HasSubstr("partition 6: modules 6,8\nbecause: active"));
  EXPECT_THAT(ran.out, HasSubstr("RANK  PARTITION  MODULES  WHY\n1     6"));
}

struct BadUse {
  std::vector<std::string> arguments;
  int exit_code;
  const char* error;  // part of the one line
};

class BadPlanTest : public ::testing::TestWithParam<BadUse> {};

TEST_P(BadPlanTest, SaysWhatToDoOnOneLine) {
  const Ran ran = RunSwitchyard(WithBoard("hgx-h100", GetParam().arguments));
  EXPECT_EQ(ran.exit_code, GetParam().exit_code);
  EXPECT_EQ(ran.out, "");
  EXPECT_THAT(ran.err, HasSubstr(GetParam().error));
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
}

INSTANTIATE_TEST_SUITE_P(
    PlanCliTest, BadPlanTest,
    ::testing::Values(
        BadUse{{}, 2, "--size is required"},
        BadUse{{"--sise", "2"}, 2, "unexpected --sise; the nearest valid one is --size"},
        BadUse{{"--size", "two"}, 2, "--size: \"two\" is no whole number"},
        BadUse{{"--size", "-1"}, 2, "--size: \"-1\" is no whole number"},
        BadUse{{"--size", "2", "--active", "3,99"},
               2,
               "--active: \"99\" is no partition here; the partitions are 0, 1, 2, 3, 4, 5, 6, 7, "
               "8, 9, 10, 11, 12, 13, 14"},
        BadUse{{"--size", "2", "--free", "1,9"}, 2, "--free: \"9\" is no module of this board"},
        BadUse{{"--size", "2", "--must-include", "0"}, 2, "the modules are 1,2,3,4,5,6,7,8"},
        BadUse{{"--size", "2", "--free", "0000:0f:00.0"}, 2, "give --map, or module ids"},
        BadUse{{"--size", "2", "--policy", "best"}, 2, "--policy: \"best\" is not one of"},
        BadUse{{"--size", "2", "--map", "/nowhere"}, 1, "/nowhere: No such file"},
        BadUse{{"--size", "2", "-o", "yaml"}, 2, "yaml"}));

TEST(PlanCliTest, ABrokenBoardOrMapIsNamed) {
  const TemporaryFolder folder;
  const std::string board = folder.Write("b.json", "{");
  const Ran broken = RunSwitchyard({"plan", "--size", "1", "--board", board});
  EXPECT_EQ(broken.exit_code, 1);
  EXPECT_THAT(broken.err, HasSubstr(board));
  const std::string map = folder.Write("m.json", R"({"0000:0f:00.0": 17})");
  const Ran bad_map = RunSwitchyard(WithBoard("hgx-h100", {"--size", "1", "--map", map}));
  EXPECT_EQ(bad_map.exit_code, 1);
  EXPECT_THAT(bad_map.err, HasSubstr("17"));
}

// The recorded scenarios of a real board, replayed through the program.
class ScenarioTest : public ::testing::TestWithParam<std::string> {
 protected:
  ScenarioTest() {
    std::ifstream file(SWITCHYARD_SOURCE_DIR "/tests/data/placement-h100.json");
    scenarios_ = json::parse(file);
  }
  int ModuleOf(int device) const { return scenarios_["devices"][absl::StrCat(device)]; }
  std::string Modules(const json& devices) const {
    std::vector<int> modules;
    for (const int device : devices) modules.push_back(ModuleOf(device));
    return absl::StrJoin(modules, ",");
  }
  json scenarios_;
};

TEST_P(ScenarioTest, EveryCaseGivesItsAnswer) {
  for (const json& scenario : scenarios_["cases"]) {
    const std::vector<int> active = scenario["active"];
    const json plan = Plan(
        "hgx-h100", {"--policy", GetParam(), "--size", scenario["size"].dump(), "--free",
                     Modules(scenario["available"]), "--must-include",
                     Modules(scenario["mustInclude"]), "--active", absl::StrJoin(active, ",")});
    const json expected = scenario["partition"][GetParam()];
    EXPECT_EQ(plan["choice"].is_null() ? json(nullptr) : plan["choice"]["partition"], expected)
        << scenario["name"];
    EXPECT_EQ(plan["candidates"].size(), scenario["candidates"].get<size_t>()) << scenario["name"];
  }
}

// Pods that come one after the other and stay; what one gets becomes active and is no longer free.
TEST_P(ScenarioTest, EverySequenceGivesItsAnswers) {
  for (const json& sequence : scenarios_["sequences"]) {
    std::set<int> free = {1, 2, 3, 4, 5, 6, 7, 8};
    std::vector<int> active;
    json got = json::array();
    for (const json& size : sequence["sizes"]) {
      const json choice = Plan(
          "hgx-h100", {"--policy", GetParam(), "--size", size.dump(), "--free",
                       absl::StrJoin(free, ","), "--active", absl::StrJoin(active, ",")})["choice"];
      if (choice.is_null()) {
        got.push_back(nullptr);
        continue;
      }
      got.push_back(choice["partition"]);
      active.push_back(choice["partition"]);
      for (const int module : choice["modules"]) free.erase(module);
    }
    EXPECT_EQ(got, sequence["partitions"][GetParam()]) << sequence["sizes"];
  }
}

INSTANTIATE_TEST_SUITE_P(BothPolicies, ScenarioTest, ::testing::Values("pack", "lowest-id"),
                         [](const auto& policy) {
                           return std::string(policy.param == "pack" ? "pack" : "lowest_id");
                         });

}  // namespace
}  // namespace switchyard::apps
