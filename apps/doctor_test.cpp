// SPDX-License-Identifier: Apache-2.0
#include "apps/doctor.h"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>

#include "apps/testing/run_program.h"
#include "base/unique_fd.h"
#include "pci/testing/tree.h"
#include "store/store.h"

namespace switchyard::apps {
namespace {

using pci::testing::SysfsTree;
using tenancy::FabricMode;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TemporaryFolder;

class FakeReader final : public fabric::FabricReader {
 public:
  Result<fabric::FabricList> ReadPartitions() override { return list; }
  Result<fabric::ModuleEntries> ReadModuleIds() override { return fabric::ModuleEntries{}; }
  Result<fabric::FabricList> list = absl::NotFoundError("no libnvfm");
};

fabric::FabricList OnePair() {
  fabric::FabricList list;
  fabric::FabricPartition pair;
  pair.id = 3;
  pair.active = true;
  for (const unsigned id : {1u, 3u}) {
    fabric::FabricGpu gpu;
    gpu.physical_id = id;
    pair.gpus.push_back(gpu);
  }
  list.partitions = {pair};
  list.max_partitions = 1;
  return list;
}

// Somebody who listens at a path, as long as it lives.
UniqueFd ListenAt(const std::string& path) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(::listen(fd.get(), 4), 0);
  return fd;
}

class DoctorTest : public ::testing::Test {
 protected:
  DoctorTest() {
    config_.paths.host_root = tree_.Path("");
    config_.paths.device_plugins = folder_.Path("dp");
    config_.paths.kubelet_root = folder_.Path("k");
    config_.paths.state = folder_.Path("state");
    config_.paths.socket = folder_.Path("agent.sock");
    config_.fabric.module_map = {folder_.Path("map.json")};
    folder_.Write("dp/DEPRECATION", "");
  }

  // The findings of one check, worst first word: "error: message" for each.
  std::vector<std::string> Of(const Findings& findings, absl::string_view check) {
    std::vector<std::string> texts;
    for (const Finding& finding : findings) {
      if (finding.check != check) continue;
      const char* verdict = finding.verdict == Verdict::kOk        ? "ok: "
                            : finding.verdict == Verdict::kWarning ? "warning: "
                                                                   : "error: ";
      texts.push_back(verdict + finding.message);
      EXPECT_EQ(finding.verdict == Verdict::kOk, finding.fix.empty()) << finding.message;
    }
    return texts;
  }

  SysfsTree tree_;
  TemporaryFolder folder_;
  agent::Config config_;
  FakeReader reader_;
};

TEST_F(DoctorTest, NamesTheDeviceThatIsNotReady) {
  tree_.AddGpu("0000:19:00.0", 1);
  tree_.AddFunction({.address = "0000:2a:00.0", .driver = "nvidia", .group = 2});
  Findings findings;
  CheckHost(config_, findings);
  EXPECT_THAT(Of(findings, "iommu"), ::testing::ElementsAre("ok: 2 IOMMU groups"));
  const auto gpus = Of(findings, "gpus");
  ASSERT_EQ(gpus.size(), 2u);
  EXPECT_THAT(gpus[0], HasSubstr("warning: 0000:2a:00.0: "));
  EXPECT_THAT(gpus[1], HasSubstr("1 of 2"));
}

TEST_F(DoctorTest, NvSwitchesOnTheHostsDriverAreRight) {
  tree_.AddFunction({.address = "0000:05:00.0",
                     .class_code = pci::testing::kClassNvSwitch,
                     .device = 0x22a3,
                     .driver = "nvidia",
                     .group = 3});
  Findings findings;
  CheckHost(config_, findings);
  EXPECT_THAT(Of(findings, "nvswitches"), ::testing::ElementsAre("ok: 1 NVSwitches"));
}

TEST_F(DoctorTest, AnEmptyNodeIsAnError) {
  Findings findings;
  CheckHost(config_, findings);
  EXPECT_THAT(Of(findings, "iommu")[0], HasSubstr("error: no IOMMU groups"));
  EXPECT_THAT(Of(findings, "gpus")[0], HasSubstr("error: no NVIDIA GPU"));
}

TEST_F(DoctorTest, KubeletMustListen) {
  Findings findings;
  CheckKubelet(config_, findings);
  for (const std::string& text : Of(findings, "kubelet")) EXPECT_THAT(text, HasSubstr("error: "));
  findings.clear();
  folder_.Write("k/pod-resources/x", "");
  const UniqueFd plugin_api = ListenAt(folder_.Path("dp/kubelet.sock"));
  const UniqueFd resources = ListenAt(folder_.Path("k/pod-resources/kubelet.sock"));
  CheckKubelet(config_, findings);
  for (const std::string& text : Of(findings, "kubelet")) EXPECT_THAT(text, HasSubstr("ok: "));
  EXPECT_THAT(Of(findings, "predecessor"),
              ::testing::ElementsAre("ok: no other GPU plugin listens"));
}

TEST_F(DoctorTest, FindsAPredecessorThatLives) {
  const std::string socket = "dp/kubevirt-GH100_H100_SXM5_80GB.sock";
  Findings findings;
  {
    const UniqueFd other = ListenAt(folder_.Path(socket));
    CheckKubelet(config_, findings);
    EXPECT_THAT(Of(findings, "predecessor")[0], HasSubstr("error: another GPU plugin serves"));
  }
  findings.clear();
  CheckKubelet(config_, findings);  // its socket is left over, nobody behind it
  EXPECT_THAT(Of(findings, "predecessor")[0], HasSubstr("ok: "));
}

TEST_F(DoctorTest, ReadsKubeletsRecordOfNames) {
  folder_.Write("dp/kubelet_internal_checkpoint",
                R"({"Data":{"RegisteredDevices":{"nvidia.com/pgpu":["1"],"other.com/x":["1"],
                    "nvidia.com/empty":[]}},"Checksum":1})");
  Findings findings;
  CheckKubelet(config_, findings);
  const auto texts = Of(findings, "predecessor");
  ASSERT_EQ(texts.size(), 2u);
  EXPECT_THAT(texts[1], HasSubstr("warning: kubelet has devices of nvidia.com/pgpu on record"));
  for (const char* broken :
       {"", "{", "[]", R"({"Data":1})", R"({"Data":{"RegisteredDevices":[]}})"}) {
    folder_.Write("dp/kubelet_internal_checkpoint", broken);
    findings.clear();
    CheckKubelet(config_, findings);
    EXPECT_EQ(Of(findings, "predecessor").size(), 1u) << broken;
  }
}

TEST(PredecessorSocketTest, IsKnownByItsName) {
  for (const char* name : {"kubevirt-GH100_H100_SXM5_80GB.sock", "sandbox-pgpu.sock",
                           "nvswitch.sock", "nvidia-gpu.sock"}) {
    EXPECT_TRUE(IsPredecessorSocket(name)) << name;
  }
  for (const char* name :
       {"kubelet.sock", "kubevirt-kvm.sock", "kubevirt-vhost-net.sock", "kubevirt-tun.sock",
        "switchyard-pgpu-1f2e3d4c.sock", "pgpu", "DEPRECATION", "intel-sriov.sock"}) {
    EXPECT_FALSE(IsPredecessorSocket(name)) << name;
  }
}

TEST_F(DoctorTest, AnAbsentFabricIsNormalInModeOff) {
  tree_.AddGpu("0000:19:00.0", 1);
  Findings findings;
  CheckFabric(config_, reader_, findings);
  EXPECT_THAT(Of(findings, "libnvfm"),
              ::testing::ElementsAre("ok: not on this node, and fabric.mode is off"));
  EXPECT_THAT(Of(findings, "fabric mode"), IsEmpty());
  config_.fabric.mode = FabricMode::kAdvise;
  findings.clear();
  CheckFabric(config_, reader_, findings);
  EXPECT_THAT(Of(findings, "libnvfm"), ::testing::ElementsAre("error: no libnvfm"));
}

TEST_F(DoctorTest, ModeOffOnANodeWithAFabricIsAWarning) {
  tree_.AddNvSwitch("0000:05:00.0", 1);
  Findings findings;
  CheckFabric(config_, reader_, findings);
  EXPECT_THAT(Of(findings, "fabric mode")[0], HasSubstr("1 NVSwitch"));
  reader_.list = OnePair();
  findings.clear();
  CheckFabric(config_, reader_, findings);
  EXPECT_THAT(Of(findings, "fabric mode")[0], HasSubstr("Fabric Manager answers"));
  config_.fabric.mode = FabricMode::kAdvise;
  findings.clear();
  CheckFabric(config_, reader_, findings);
  EXPECT_THAT(Of(findings, "fabric mode"), IsEmpty());
}

TEST_F(DoctorTest, TheMapMustReachTheTable) {
  config_.fabric.mode = FabricMode::kAdvise;
  reader_.list = OnePair();
  folder_.Write("map.json", R"({"0000:19:00.0": 1})");
  Findings findings;
  CheckFabric(config_, reader_, findings);
  EXPECT_THAT(Of(findings, "partitions"), ::testing::ElementsAre("ok: 1 partitions, 1 active"));
  const auto map = Of(findings, "module map");
  ASSERT_EQ(map.size(), 2u);
  EXPECT_THAT(map[1], HasSubstr("warning: no GPU is known for modules 3"));
}

TEST_F(DoctorTest, ARememberedMapReachesTheTableToo) {
  config_.fabric.mode = FabricMode::kAdvise;
  reader_.list = OnePair();
  {
    auto opened = store::Store::Open(config_.paths.state, store::Store::Mode::kReadWrite);
    ASSERT_TRUE(opened.ok()) << opened.status();
    ASSERT_TRUE(opened->store->Put("module_map", "0000:19:00.0", "1").ok());
    ASSERT_TRUE(opened->store->Put("module_map", "0000:3b:00.0", "3").ok());
  }
  Findings findings;
  CheckFabric(config_, reader_, findings);
  EXPECT_THAT(Of(findings, "module map"), ::testing::ElementsAre("ok: 2 GPUs have a module id"));
}

TEST_F(DoctorTest, AMalformedMapIsAnError) {
  folder_.Write("map.json", R"({"0000:19:00.0": 17})");
  Findings findings;
  CheckFabric(config_, reader_, findings);
  EXPECT_THAT(Of(findings, "module map")[0], HasSubstr("error: "));
}

TEST_F(DoctorTest, MetricsBeyondThisMachineAreAWarning) {
  Findings findings;
  CheckAgent(config_, findings);
  EXPECT_THAT(Of(findings, "metrics")[0], HasSubstr("ok: "));
  EXPECT_THAT(Of(findings, "state")[0], HasSubstr("can be made"));
  EXPECT_THAT(Of(findings, "agent")[0], HasSubstr("warning: no agent is running"));
  config_.http_address.host = "0.0.0.0";
  const UniqueFd agent = ListenAt(config_.paths.socket);
  findings.clear();
  CheckAgent(config_, findings);
  EXPECT_THAT(Of(findings, "metrics")[0], HasSubstr("warning: "));
  EXPECT_THAT(Of(findings, "agent")[0], HasSubstr("ok: "));
}

}  // namespace
}  // namespace switchyard::apps
