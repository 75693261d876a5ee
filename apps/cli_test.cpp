// SPDX-License-Identifier: Apache-2.0
// The program as a whole: help, exit codes, errors, and the JSON of inventory, mapping and config.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "agent/http_server.h"
#include "agent/status_json.h"
#include "apps/testing/run_program.h"
#include "pci/testing/tree.h"

namespace switchyard::apps {
namespace {

using nlohmann::json;
using pci::testing::SysfsTree;
using ::testing::HasSubstr;
using testing::Ran;
using testing::RunSwitchyard;
using ::testing::StartsWith;
using testing::TemporaryFolder;

// The JSON of a command that must succeed.
json Json(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"-o", "json"});
  const Ran ran = RunSwitchyard(arguments);
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  return json::parse(ran.out, nullptr, false);
}

class HelpTest : public ::testing::TestWithParam<std::vector<std::string>> {};

TEST_P(HelpTest, HasExamplesAndExitCodes) {
  std::vector<std::string> arguments = GetParam();
  arguments.emplace_back("--help");
  const Ran ran = RunSwitchyard(arguments);
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_EQ(ran.err, "");
  EXPECT_THAT(ran.out, HasSubstr("Exit codes: 0"));
  EXPECT_THAT(ran.out, HasSubstr("switchyard " + GetParam().front()));
}

INSTANTIATE_TEST_SUITE_P(
    EveryCommand, HelpTest,
    ::testing::Values(
        std::vector<std::string>{"agent"}, std::vector<std::string>{"inventory"},
        std::vector<std::string>{"mapping", "show"}, std::vector<std::string>{"mapping", "create"},
        std::vector<std::string>{"mapping", "set"}, std::vector<std::string>{"partitions"},
        std::vector<std::string>{"plan"}, std::vector<std::string>{"tenancies"},
        std::vector<std::string>{"release"}, std::vector<std::string>{"drain"},
        std::vector<std::string>{"reconcile"}, std::vector<std::string>{"journal", "verify"},
        std::vector<std::string>{"journal", "export"}, std::vector<std::string>{"doctor"},
        std::vector<std::string>{"probe"}, std::vector<std::string>{"config", "show"},
        std::vector<std::string>{"config", "validate"}, std::vector<std::string>{"version"}));

TEST(UsageTest, IsExitCodeTwoAndOneLine) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{},
                                                    {"nonsense"},
                                                    {"mapping"},
                                                    {"journal"},
                                                    {"reconcile"},
                                                    {"release"},
                                                    {"release", "seven", "--yes"},
                                                    {"drain", "--off", "--wait"},
                                                    {"drain", "--wait=soon"},
                                                    {"plan", "extra"},
                                                    {"inventory", "-x"},
                                                    {"mapping", "set", "0000:0f:00.0"},
                                                    {"version", "--config", "x"}}) {
    const Ran ran = RunSwitchyard(arguments);
    EXPECT_EQ(ran.exit_code, 2) << ::testing::PrintToString(arguments);
    EXPECT_EQ(ran.out, "");
    EXPECT_THAT(ran.err, StartsWith("switchyard: "));
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  }
}

TEST(UsageTest, NamesTheNearestCommandAndFlag) {
  EXPECT_THAT(RunSwitchyard({"partition"}).err, HasSubstr("the nearest valid one is partitions"));
  EXPECT_THAT(RunSwitchyard({"agent", "--fabric-probe-intervall=3s"}).err,
              HasSubstr("the nearest valid one is --fabric-probe-interval"));
}

TEST(VersionTest, IsTheProjects) {
  EXPECT_EQ(RunSwitchyard({"version"}).out, SWITCHYARD_VERSION "\n");
  EXPECT_EQ(RunSwitchyard({"--version"}).out, SWITCHYARD_VERSION "\n");
  EXPECT_EQ(Json({"version"}), json({{"version", SWITCHYARD_VERSION}}));
}

TEST(ConfigCliTest, ValidateNamesEveryMistake) {
  const TemporaryFolder folder;
  const std::string file = folder.Write("c.yaml", "fabric:\n  mode: enforced\n  polici: pack\n");
  const Ran ran = RunSwitchyard({"config", "validate", file});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_EQ(ran.out, "");
  EXPECT_THAT(ran.err, HasSubstr(absl::StrCat("switchyard: ", file, ":2: fabric.mode: \"enforced\"",
                                              " is not one of")));
  EXPECT_THAT(ran.err, HasSubstr(absl::StrCat("switchyard: ", file, ":3: fabric.polici: unknown")));
  const Ran as_json = RunSwitchyard({"config", "validate", "--config", file, "-o", "json"});
  EXPECT_EQ(as_json.exit_code, 1);
  const json document = json::parse(as_json.out);
  EXPECT_EQ(document["valid"], false);
  EXPECT_EQ(document["errors"].size(), 2u);
}

TEST(ConfigCliTest, ValidateAcceptsAGoodFile) {
  const TemporaryFolder folder;
  const std::string file = folder.Write("c.yaml", "consumer: kata\n");
  EXPECT_EQ(RunSwitchyard({"config", "validate", file}).exit_code, 0);
  EXPECT_EQ(Json({"config", "validate", file}), json({{"valid", true}, {"errors", json::array()}}));
  EXPECT_EQ(RunSwitchyard({"config", "validate", folder.Path("none.yaml")}).exit_code, 1);
}

TEST(ConfigCliTest, ShowSaysWhereEachValueComesFrom) {
  const TemporaryFolder folder;
  const std::string file = folder.Write("c.yaml", "log:\n  level: error\n  format: json\n");
  const Ran ran =
      RunSwitchyard({"config", "show", "--config", file, "--log-level", "debug", "-o", "json"},
                    {{"SWITCHYARD_FABRIC_MODULE_MAP", "/a,/b"}});
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  std::map<std::string, json> settings;
  const json document = json::parse(ran.out);
  for (const json& setting : document["settings"]) settings[setting["key"]] = setting;
  EXPECT_EQ(settings["log.level"]["value"], "debug");
  EXPECT_EQ(settings["log.level"]["source"], "flag --log-level");
  EXPECT_EQ(settings["log.level"]["overrides"], json({"default", absl::StrCat(file, ":2")}));
  EXPECT_EQ(settings["log.format"]["source"], absl::StrCat(file, ":3"));
  EXPECT_EQ(settings["fabric.moduleMap"]["value"], json({"/a", "/b"}));
  EXPECT_EQ(settings["fabric.moduleMap"]["source"], "environment SWITCHYARD_FABRIC_MODULE_MAP");
  EXPECT_EQ(settings["paths.state"]["source"], "default");
}

TEST(AgentCliTest, RefusesToStartOnABadConfiguration) {
  const Ran ran = RunSwitchyard({"agent"}, {{"ENABLE_FABRIC_MANAGER", "maybe"}});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.err, HasSubstr("ENABLE_FABRIC_MANAGER: \"maybe\" is not one of true | false"));
}

TEST(InventoryCliTest, JsonIsTheContract) {
  SysfsTree tree;
  tree.AddGpu("0000:19:00.0", 7, 1);
  tree.AddFunction({.address = "0000:19:00.1",
                    .class_code = pci::testing::kClassAudio,
                    .device = 0x1aef,
                    .driver = "snd_hda_intel",
                    .group = 7});
  tree.AddFunction({.address = "0000:2a:00.0", .group = 9, .numa_node = -1, .vfio = 3});
  tree.AddFunction({.address = "0000:3b:00.0", .driver = std::nullopt, .group = std::nullopt});
  tree.AddGpu("0000:4c:00.0", 11);
  tree.RemoveFile("0000:4c:00.0", "class");
  tree.AddIommufd();
  const TemporaryFolder folder;
  const std::string ids =
      folder.Write("pci.ids", "10de  NVIDIA Corporation\n\t2330  GH100 [H100 SXM5 80GB]\n");

  const json document = Json({"inventory", "--host-root", tree.Path(""), "--pci-ids", ids});
  ASSERT_EQ(document.size(), 2u);
  ASSERT_EQ(document["devices"].size(), 3u) << document.dump(1);
  const json& with_audio = document["devices"][0];
  EXPECT_EQ(with_audio.size(), 12u);
  EXPECT_EQ(with_audio["address"], "0000:19:00.0");
  EXPECT_EQ(with_audio["class"], "0x030200");
  EXPECT_EQ(with_audio["vendor"], "0x10de");
  EXPECT_EQ(with_audio["device"], "0x2330");
  EXPECT_EQ(with_audio["name"], "GH100 [H100 SXM5 80GB]");
  EXPECT_EQ(with_audio["driver"], "vfio-pci");
  EXPECT_EQ(with_audio["iommuGroup"], 7);
  EXPECT_EQ(with_audio["members"], json({"0000:19:00.0", "0000:19:00.1"}));
  EXPECT_EQ(with_audio["numaNode"], 1);
  EXPECT_EQ(with_audio["backend"], "legacy");
  EXPECT_EQ(with_audio["ready"], false);
  EXPECT_THAT(with_audio["problem"].get<std::string>(), HasSubstr("0000:19:00.1"));
  const json& good = document["devices"][1];
  EXPECT_TRUE(good["numaNode"].is_null());
  EXPECT_EQ(good["backend"], "iommufd");
  EXPECT_EQ(good["ready"], true);
  EXPECT_TRUE(good["problem"].is_null());
  const json& unbound = document["devices"][2];
  EXPECT_TRUE(unbound["driver"].is_null());
  EXPECT_TRUE(unbound["iommuGroup"].is_null());
  EXPECT_TRUE(unbound["backend"].is_null());
  EXPECT_EQ(unbound["members"], json({"0000:3b:00.0"}));
  ASSERT_EQ(document["problems"].size(), 1u);
  EXPECT_EQ(document["problems"][0].size(), 2u);
  EXPECT_THAT(document["problems"][0]["path"].get<std::string>(), HasSubstr("0000:4c:00.0"));
}

TEST(InventoryCliTest, TableHasProblemsBelow) {
  SysfsTree tree;
  tree.AddFunction({.address = "0000:3b:00.0", .driver = "nvidia", .group = 4});
  tree.AddNvSwitch("0000:05:00.0", 5);
  const Ran ran = RunSwitchyard({"inventory", "--host-root", tree.Path("")});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_THAT(ran.out, StartsWith("ADDRESS       KIND      NAME"));
  EXPECT_THAT(ran.out, HasSubstr("\n0000:05:00.0  NVSwitch"));
  EXPECT_THAT(ran.out, HasSubstr("\n0000:3b:00.0: "));
}

TEST(InventoryCliTest, AFolderThatIsNoTreeFails) {
  const TemporaryFolder folder;
  const Ran ran = RunSwitchyard({"inventory", "--host-root", folder.Path("")});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.err, HasSubstr("is --host-root a folder with sys/ in it?"));
}

class MappingSetTest : public ::testing::Test {
 protected:
  MappingSetTest() {
    tree_.AddGpu("0000:19:00.0", 1);
    tree_.AddGpu("0000:2a:00.0", 2);
    tree_.AddNvSwitch("0000:05:00.0", 3);
  }
  Ran Set(std::vector<std::string> more) {
    std::vector<std::string> arguments = {"mapping",      "set",      "--paths-host-root",
                                          tree_.Path(""), "--output", folder_.Path("s/map.json")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunSwitchyard(arguments);
  }
  json Map() { return json::parse(folder_.Read("s/map.json"), nullptr, false); }

  SysfsTree tree_;
  TemporaryFolder folder_;
};

TEST_F(MappingSetTest, MergesIntoTheFile) {
  const Ran first = Set({"00000000:19:00.0", "4"});
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("add it to fabric.moduleMap"));
  EXPECT_EQ(Set({"2a:00.0", "16"}).exit_code, 0);
  EXPECT_EQ(Map(), json({{"0000:19:00.0", "4"}, {"0000:2a:00.0", "16"}}));
  EXPECT_EQ(Set({"2a:00.0", "3"}).exit_code, 0);  // a GPU's own module may be changed
  EXPECT_EQ(Map()["0000:2a:00.0"], "3");
}

TEST_F(MappingSetTest, AModuleIsTakenOnlyOnDemand) {
  ASSERT_EQ(Set({"0000:19:00.0", "4"}).exit_code, 0);
  const Ran taken = Set({"0000:2a:00.0", "4"});
  EXPECT_EQ(taken.exit_code, 1);
  EXPECT_THAT(taken.err, HasSubstr("module 4 is 0000:19:00.0 already"));
  EXPECT_EQ(Map(), json({{"0000:19:00.0", "4"}}));
  EXPECT_EQ(Set({"0000:2a:00.0", "4", "--replace"}).exit_code, 0);
  EXPECT_EQ(Map(), json({{"0000:2a:00.0", "4"}}));
}

TEST_F(MappingSetTest, RefusesWhatIsNoGpuOrNoModule) {
  EXPECT_EQ(Set({"0000:19:00.0", "17"}).exit_code, 2);
  EXPECT_EQ(Set({"0000:19:00.0", "0"}).exit_code, 2);
  EXPECT_EQ(Set({"0000:19:00.0", "1.5"}).exit_code, 2);
  EXPECT_EQ(Set({"nonsense", "1"}).exit_code, 2);
  EXPECT_EQ(Set({"0000:77:00.0", "1"}).exit_code, 1);
  EXPECT_EQ(Set({"0000:05:00.0", "1"}).exit_code, 1);  // an NVSwitch
  EXPECT_EQ(folder_.Read("s/map.json"), "");
}

TEST_F(MappingSetTest, AMalformedFileIsLeftAlone) {
  folder_.Write("s/map.json", "{\"0000:19:00.0\": 99}");
  const Ran ran = Set({"0000:2a:00.0", "1"});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.err, HasSubstr("correct it, or move it away"));
  EXPECT_EQ(folder_.Read("s/map.json"), "{\"0000:19:00.0\": 99}");
}

// No agent, no state: the reading commands say so, and the map is what the files say.
TEST(OfflineTest, WithoutAgentAndState) {
  const TemporaryFolder folder;
  const std::vector<std::string> paths = {"--paths-socket", folder.Path("a.sock"), "--paths-state",
                                          folder.Path("state")};
  std::vector<std::string> partitions = {"partitions"};
  partitions.insert(partitions.end(), paths.begin(), paths.end());
  const Ran ran = RunSwitchyard(partitions);
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.err, HasSubstr("start one with `switchyard agent`"));

  const std::string map = folder.Write("m.json", "{\"0000:19:00.0\": 4}");
  const std::string other = folder.Write("n.json", "{\"0000:19:00.0\": 5}");
  std::vector<std::string> mapping = {"mapping", "show", "--fabric-module-map",
                                      absl::StrCat(map, ",", folder.Path("absent.json"))};
  mapping.insert(mapping.end(), paths.begin(), paths.end());
  const json shown = Json(mapping);
  EXPECT_EQ(shown["live"], false);
  EXPECT_EQ(
      shown["entries"],
      json::array(
          {{{"address", "0000:19:00.0"}, {"module", 4}, {"sources", {"file"}}, {"origin", map}}}));
  EXPECT_EQ(shown["errors"], json::array());
  mapping[3] = absl::StrCat(map, ",", other);
  const json contradicted = Json(mapping);
  EXPECT_EQ(contradicted["entries"], json::array());
  EXPECT_EQ(contradicted["errors"].size(), 1u);
}

// Such an agent reads no map; the operator still sees what the files say.
TEST(MappingShowTest, BesideAnAgentWhoseFabricIsOffReadsTheFiles) {
  const TemporaryFolder folder;
  const std::string socket = folder.Path("a.sock");
  const std::string answer = agent::FabricJson(tenancy::FabricMode::kOff, {}, nullptr);
  agent::HttpServer server;
  const Status listening = server.ListenUnix(socket, [&](const agent::HttpRequest&) {
    return agent::HttpResponse{200, "application/json", answer};
  });
  ASSERT_TRUE(listening.ok()) << listening;
  server.Start();
  const std::string map = folder.Write("m.json", "{\"0000:19:00.0\": 4}");
  const json shown =
      Json({"mapping", "show", "--paths-socket", socket, "--fabric-module-map", map});
  ASSERT_EQ(shown["entries"].size(), 1u);
  EXPECT_EQ(shown["entries"][0]["module"], 4);
}

}  // namespace
}  // namespace switchyard::apps
