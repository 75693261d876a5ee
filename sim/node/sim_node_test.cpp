// SPDX-License-Identifier: Apache-2.0
#include "sim/node/sim_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "sim/node/gpu_resources.h"
#include "sim/node/picture.h"
#include "sim/node/requests.h"

namespace switchyard::sim {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

class SimNodeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/sn.XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    dir_ = folder;
  }
  void TearDown() override {
    node_.reset();
    std::filesystem::remove_all(dir_);
  }
  void Make(SimNodeOptions options = {}) {
    options.dir = dir_;
    options.libraries = SWITCHYARD_LIB_DIR;
    Result<std::unique_ptr<SimNode>> node = SimNode::Create(options);
    ASSERT_TRUE(node.ok()) << node.status();
    node_ = *std::move(node);
  }
  Result<Json> Ask(Json request) { return HandleRequest(*node_, request); }
  Json Status() { return Ask({{"command", "status"}}).value(); }
  static std::string Read(const std::string& path) { return ReadFile(path, 1 << 20).value_or(""); }

  std::string dir_;
  std::unique_ptr<SimNode> node_;
};

TEST_F(SimNodeTest, EverythingOfANodeIsThere) {
  Make({.iommufd = true});
  const NodePaths& paths = node_->paths();
  for (const std::string& path :
       {paths.host_root() + "/sys/bus/pci/devices", paths.host_root() + "/dev/iommu",
        paths.fm_socket(), paths.fm_internal_socket(), paths.module_map(), paths.nvfm(),
        paths.nvml(), paths.nvml_json(), paths.device_plugins() + "/kubelet.sock",
        paths.pod_resources() + "/kubelet.sock", paths.agent_yaml()}) {
    EXPECT_TRUE(std::filesystem::exists(path)) << path;
  }
  EXPECT_TRUE(node_->fm().running());
  // 8 GPUs on vfio, 4 NVSwitches for Fabric Manager.
  int gpus = 0;
  int switches = 0;
  for (const FunctionState& f : node_->sysfs().functions()) {
    gpus += f.spec.driver == "vfio-pci" ? 1 : 0;
    switches += f.spec.driver == "nvidia" ? 1 : 0;
  }
  EXPECT_EQ(gpus, 8);
  EXPECT_EQ(switches, 4);
}

TEST_F(SimNodeTest, TheMapNamesEveryModuleOnce) {
  Make({.board = "hgx-a100-16"});
  const Json map = Json::parse(Read(node_->paths().module_map()));
  ASSERT_EQ(map.size(), 16u);
  std::set<std::string> modules;
  for (const auto& [address, module] : map.items()) {
    const PciAddress parsed = PciAddress::Parse(address).value();
    EXPECT_EQ(parsed, node_->AddressOf(std::stoi(module.get<std::string>())));
    modules.insert(module);
  }
  EXPECT_EQ(modules.size(), 16u);

  ASSERT_EQ(node_->SetModuleMap(ModuleMapFile::kMalformed), OkStatus());
  EXPECT_FALSE(Json::accept(Read(node_->paths().module_map())));
  ASSERT_EQ(node_->SetModuleMap(ModuleMapFile::kMissing), OkStatus());
  EXPECT_FALSE(std::filesystem::exists(node_->paths().module_map()));
  ASSERT_EQ(node_->SetModuleMap(ModuleMapFile::kMissing), OkStatus());  // still
  ASSERT_EQ(node_->SetModuleMap(ModuleMapFile::kGood), OkStatus());
  EXPECT_EQ(Json::parse(Read(node_->paths().module_map())), map);
}

TEST_F(SimNodeTest, GroupsDoNotFollowTheModules) {
  Make();
  std::map<PciAddress, FunctionState> functions;
  for (const FunctionState& f : node_->sysfs().functions()) functions[f.spec.address] = f;
  std::vector<int> groups;
  for (int module = 1; module <= 8; ++module) {
    groups.push_back(functions[node_->AddressOf(module)].group);
  }
  EXPECT_FALSE(std::is_sorted(groups.begin(), groups.end()));
}

TEST_F(SimNodeTest, ARebootChangesNumbersAndForgetsWhatWasActive) {
  Make();
  ASSERT_EQ(node_->fm().SetActive({3}), OkStatus());
  const std::vector<FunctionState> before = node_->sysfs().functions();
  ASSERT_EQ(node_->Reboot(), OkStatus());
  const std::vector<FunctionState> after = node_->sysfs().functions();
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i) EXPECT_NE(before[i].group, after[i].group);
  EXPECT_TRUE(node_->fm().active().empty());
  EXPECT_TRUE(node_->fm().running());
  EXPECT_TRUE(std::filesystem::exists(node_->paths().device_plugins() + "/kubelet.sock"));
}

TEST_F(SimNodeTest, ARebootMayKeepTheNumbers) {
  Make();
  ASSERT_EQ(node_->fm().SetActive({3}), OkStatus());
  const std::vector<FunctionState> before = node_->sysfs().functions();
  ASSERT_EQ(node_->Reboot(RebootNumbers::kSame), OkStatus());
  const std::vector<FunctionState> after = node_->sysfs().functions();
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(before[i].group, after[i].group);
    EXPECT_EQ(before[i].vfio, after[i].vfio);
  }
  EXPECT_TRUE(node_->fm().active().empty());
}

TEST_F(SimNodeTest, EachBootHasAnIdOfItsOwn) {
  Make();
  const std::string path = node_->paths().host_root() + "/proc/sys/kernel/random/boot_id";
  std::set<std::string> ids = {Read(path)};
  EXPECT_THAT(*ids.begin(), ::testing::MatchesRegex("[0-9a-f-]{36}\n"));
  for (int boot = 0; boot < 3; ++boot) {
    ASSERT_EQ(node_->Reboot(), OkStatus());
    ids.insert(Read(path));
  }
  EXPECT_EQ(ids.size(), 4u);
}

TEST_F(SimNodeTest, ALostCheckpointIsACommand) {
  Make();
  const std::string path = node_->paths().device_plugins() + "/kubelet_internal_checkpoint";
  ASSERT_EQ(WriteFileAtomically(path, "x"), OkStatus());
  ASSERT_TRUE(Ask({{"command", "kubelet.lose-checkpoint"}}).ok());
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(std::filesystem::exists(node_->paths().device_plugins() + "/kubelet.sock"));
  EXPECT_TRUE(absl::IsNotFound(Ask({{"command", "pod.restart"}, {"name", "none"}}).status()));
}

TEST_F(SimNodeTest, BlackwellHasASwitchManagerInsteadOfSwitches) {
  Make({.board = "hgx-b200", .driver = "none"});
  EXPECT_THAT(Read(node_->paths().host_root() + "/sys/bus/pci/devices/0000:05:00.0/vpd"),
              HasSubstr("SW_MNG"));
  EXPECT_TRUE(Status()["gpus"][0]["driver"].is_null());
}

TEST_F(SimNodeTest, ALongFolderIsRefusedBeforeSocketsFail) {
  const Result<std::unique_ptr<SimNode>> node =
      SimNode::Create({.dir = "/tmp/" + std::string(60, 'x')});
  EXPECT_EQ(node.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(std::filesystem::exists("/tmp/" + std::string(60, 'x')));
}

TEST_F(SimNodeTest, PartsStartAlone) {
  Make({.board = "", .with_sysfs = false, .with_fm = false});
  EXPECT_FALSE(Ask({{"command", "device.vanish"}, {"device", "1"}}).ok());
  EXPECT_FALSE(Ask({{"command", "fm.down"}}).ok());
  EXPECT_TRUE(Ask({{"command", "kubelet.restart"}}).ok());
  EXPECT_EQ(Status().count("gpus"), 0u);
}

TEST_F(SimNodeTest, DeviceFaultsShowInTheStatus) {
  Make();
  const std::string third = node_->AddressOf(3).ToString();
  ASSERT_TRUE(Ask({{"command", "device.vanish"}, {"device", "3"}}).ok());
  EXPECT_EQ(Status()["gpus"][2]["present"], false);
  ASSERT_TRUE(Ask({{"command", "device.return"}, {"device", third}}).ok());
  EXPECT_EQ(Status()["gpus"][2]["present"], true);
  ASSERT_TRUE(Ask({{"command", "device.driver"}, {"device", third}, {"driver", "none"}}).ok());
  EXPECT_TRUE(Status()["gpus"][2]["driver"].is_null());
  ASSERT_TRUE(Ask({{"command", "device.share"}, {"device", "1"}, {"what", "2"}}).ok());
  const Json status = Status();
  EXPECT_EQ(status["gpus"][0]["iommuGroup"], status["gpus"][1]["iommuGroup"]);
  EXPECT_THAT(StatusPicture(status), HasSubstr("no driver"));
}

TEST_F(SimNodeTest, FabricFaultsAddUpUntilNone) {
  Make();
  ASSERT_TRUE(Ask({{"command", "fm.latency"}, {"ms", 250}}).ok());
  ASSERT_TRUE(Ask({{"command", "fm.table"}, {"rule", "17-gpus"}}).ok());
  ASSERT_TRUE(Ask({{"command", "fm.hang"}, {"call", "list"}}).ok());
  const FabricManagerFaults faults = node_->fm().faults();
  EXPECT_EQ(faults.latency, absl::Milliseconds(250));
  EXPECT_EQ(faults.table, BrokenTable::kTooManyGpus);
  EXPECT_EQ(faults.hang, FabricManagerFaults::Hang::kList);
  ASSERT_TRUE(Ask({{"command", "fm.no-effect"}}).ok());
  ASSERT_TRUE(Ask({{"command", "fm.late"}}).ok());
  ASSERT_TRUE(Ask({{"command", "fm.slow"}, {"ms", 300}}).ok());
  ASSERT_TRUE(Ask({{"command", "fm.hang"}, {"call", "set-activated"}}).ok());
  ASSERT_TRUE(Ask({{"command", "fm.code"}, {"code", -10}, {"call", "activate"}}).ok());
  ASSERT_TRUE(Ask({{"command", "fm.code"}, {"code", -8}, {"call", "list"}}).ok());
  ASSERT_TRUE(Ask({{"command", "fm.code"}, {"code", -5}, {"call", "connect"}}).ok());
  EXPECT_FALSE(Ask({{"command", "fm.code"}, {"code", -5}, {"call", "reset"}}).ok());
  const FabricManagerFaults more = node_->fm().faults();
  EXPECT_TRUE(more.no_effect);
  EXPECT_TRUE(more.late_changes);
  EXPECT_EQ(more.change_time, absl::Milliseconds(300));
  EXPECT_EQ(more.hang, FabricManagerFaults::Hang::kSetActivated);
  EXPECT_EQ(more.change_codes, (std::map<WireCall, fmReturn>{{WireCall::kActivate, -10}}));
  EXPECT_EQ(more.list_code, -8);
  EXPECT_EQ(more.connect_code, -5);
  ASSERT_TRUE(Ask({{"command", "fm.none"}}).ok());
  EXPECT_EQ(node_->fm().faults().table, BrokenTable::kNone);
  EXPECT_TRUE(node_->fm().faults().change_codes.empty());
  ASSERT_TRUE(Ask({{"command", "fm.down"}}).ok());
  EXPECT_THAT(StatusPicture(Status()), HasSubstr("Fabric Manager: DOWN"));
}

TEST_F(SimNodeTest, AnOperatorActivatesPartitions) {
  Make();
  ASSERT_TRUE(Ask({{"command", "fm.activate"}, {"ids", {3, 5}}}).ok());
  ASSERT_TRUE(Ask({{"command", "fm.deactivate"}, {"ids", {3}}}).ok());
  EXPECT_EQ(node_->fm().active(), std::set<int>{5});
  EXPECT_THAT(FabricPicture(Status()["fm"]), HasSubstr("active partitions: 5 {5,7}"));
  const auto refused = [this](const char* command, int id) {
    return std::string(Ask({{"command", command}, {"ids", {id}}}).status().message());
  };
  EXPECT_THAT(refused("fm.activate", 2), HasSubstr("answers -7: a GPU of it is in another"));
  EXPECT_THAT(refused("fm.activate", 5), HasSubstr("answers -7: it is active already"));
  EXPECT_THAT(refused("fm.activate", 99), HasSubstr("answers -1: the board has no such"));
  EXPECT_THAT(refused("fm.deactivate", 3), HasSubstr("answers -4: it is not active"));
  EXPECT_EQ(node_->fm().active(), std::set<int>{5});
  node_->fm().Stop();
  EXPECT_THAT(refused("fm.activate", 3), HasSubstr("answers -9: it is down"));
}

TEST_F(SimNodeTest, AWarmFabricManagerWaitsOnTheClockThatCommandsMove) {
  Make({.fm_return_codes = ReturnCodes::kBlackwell});
  ASSERT_TRUE(Ask({{"command", "fm.activate"}, {"ids", {3, 5}}}).ok());
  const Result<Json> done = Ask({{"command", "fm.restart"}, {"kind", "warm"}, {"code", -22}});
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_THAT((*done)["done"].get<std::string>(), HasSubstr("waits 1m for the list"));
  EXPECT_THAT(FabricPicture(Status()["fm"]),
              HasSubstr("up, WAITS for the list of active partitions"));
  EXPECT_THAT(FabricPicture(Status()["fm"]),
              HasSubstr("active partitions: none\n  routed by the switches: 3 {1,3}, 5 {5,7}\n"));
  EXPECT_THAT(Ask({{"command", "fm.activate"}, {"ids", {3}}}).status().message(),
              HasSubstr("answers -22: it waits"));
  ASSERT_TRUE(Ask({{"command", "clock.advance"}, {"ms", 59'000}}).ok());
  EXPECT_TRUE(node_->fm().running());
  ASSERT_TRUE(Ask({{"command", "clock.advance"}, {"ms", 1'000}}).ok());
  EXPECT_TRUE(node_->fm().AwaitStopped(absl::Seconds(60)));
  ASSERT_TRUE(Ask({{"command", "fm.restart"}, {"kind", "cold"}}).ok());
  EXPECT_THAT(FabricPicture(Status()["fm"]), Not(HasSubstr("routed")));
  EXPECT_THAT(Ask({{"command", "fm.deactivate"}, {"ids", {3}}}).status().message(),
              HasSubstr("answers -18: it is not active"));
  EXPECT_FALSE(Ask({{"command", "fm.restart"}, {"kind", "hot"}}).ok());
}

TEST_F(SimNodeTest, WrongRequestsAreErrorsThatNameTheArgument) {
  Make();
  EXPECT_THAT(Ask({{"command", "fly"}}).status().message(), HasSubstr("fly"));
  EXPECT_THAT(Ask({{"command", "device.vanish"}}).status().message(), HasSubstr("device"));
  EXPECT_THAT(Ask({{"command", "device.vanish"}, {"device", "9"}}).status().message(),
              HasSubstr("no module 9"));
  EXPECT_THAT(Ask({{"command", "fm.latency"}, {"ms", "1"}}).status().message(), HasSubstr("ms"));
  EXPECT_THAT(Ask({{"command", "pod.add"}, {"name", "a"}, {"gpus", 1}}).status().message(),
              HasSubstr("no device plugin has registered"));
  EXPECT_FALSE(Ask({{"command", "clock.advance"}, {"ms", -1}}).ok());
}

TEST_F(SimNodeTest, KubeletsIdsAreAddressesOrNumbers) {
  Make({.iommufd = true});
  const std::vector<FunctionState> functions = node_->sysfs().functions();
  for (const FunctionState& f : functions) {
    if (!f.vfio.has_value()) continue;
    const auto by_number = ModuleOfId(*node_, absl::StrCat(*f.vfio));
    ASSERT_TRUE(by_number.has_value());
    EXPECT_EQ(node_->AddressOf(*by_number), f.spec.address);
    EXPECT_EQ(ModuleOfId(*node_, f.spec.address.ToString()), by_number);
  }
  EXPECT_EQ(DescribeModules(*node_, {3, 1}), "modules 1, 3: partition 3");
  EXPECT_EQ(DescribeModules(*node_, {1, 2}), "modules 1, 2: no partition");
}

TEST(AgentYaml, IsOneMappingASection) {
  const std::string yaml =
      AgentYaml(NodePaths("/tmp/n"),
                {{"fabric.mode", "\"off\""}, {"allocate.wait", "1s"}, {"log.level", "debug"}});
  EXPECT_THAT(yaml, HasSubstr("consumer: kubevirt\n"));
  EXPECT_THAT(yaml, HasSubstr("allocate:\n  wait: 1s\n"));
  EXPECT_THAT(yaml, HasSubstr("  mode: \"off\"\n"));
  EXPECT_THAT(yaml, Not(HasSubstr("mode: advise")));
  EXPECT_THAT(yaml, HasSubstr("  hostRoot: \"/tmp/n/root\"\n"));
  for (const char* section : {"\nfabric:\n", "\npaths:\n"}) {
    EXPECT_EQ(yaml.find(section), yaml.rfind(section)) << section;
  }
}

TEST(MovableClock, GoesOnAndJumps) {
  MovableClock clock;
  const absl::Duration before = clock.Monotonic();
  const absl::Time now = clock.Now();
  clock.Advance(absl::Hours(1));
  EXPECT_GE(clock.Monotonic() - before, absl::Hours(1));
  EXPECT_GE(clock.Now() - now, absl::Hours(1));
}

TEST(MovableClock, AdvancingWakesWhoWaits) {
  MovableClock clock;
  Wakeup wakeup;
  std::thread mover([&clock] {
    while (clock.waiting() == 0) std::this_thread::yield();
    clock.Advance(absl::Hours(2));
  });
  const absl::Duration before = clock.Monotonic();
  (void)wakeup.WaitFor(clock, absl::Hours(1));
  EXPECT_GE(clock.Monotonic() - before, absl::Hours(1));
  mover.join();
}

}  // namespace
}  // namespace switchyard::sim
