// SPDX-License-Identifier: Apache-2.0
// Restarts and absences, in any order: of kubelet, the agent, Fabric Manager.

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "tests/node/node_test.h"

namespace switchyard::sim {
namespace {

using ::testing::HasSubstr;

class RestartTest : public NodeTest {
 protected:
  bool AllHealthy() const {
    return Report().connected &&
           Report().allocatable == static_cast<int>(node_->board().devices.size());
  }

  // Device-plugin sockets of an agent in kubelet's folder.
  int Sockets() const {
    int sockets = 0;
    for (const auto& entry : std::filesystem::directory_iterator(node_->paths().device_plugins())) {
      sockets += entry.path().filename().string().starts_with("switchyard-") ? 1 : 0;
    }
    return sockets;
  }

  // TCP and unix sockets that a process listens on.
  static int ListeningSocketsOf(pid_t pid) {
    std::set<std::string> listening;  // inodes
    std::string line;
    for (const char* table : {"unix", "tcp", "tcp6"}) {
      const bool is_unix = absl::string_view(table) == "unix";
      std::ifstream rows(absl::StrCat("/proc/", pid, "/net/", table));
      for (std::getline(rows, line); std::getline(rows, line);) {
        const std::vector<std::string> fields = absl::StrSplit(line, ' ', absl::SkipEmpty());
        // proc(5): the flag __SO_ACCEPTCON; the state TCP_LISTEN.
        if (is_unix && fields.at(3) == "00010000") listening.insert(fields.at(6));
        if (!is_unix && fields.at(3) == "0A") listening.insert(fields.at(9));
      }
    }
    int count = 0;
    for (const auto& fd : std::filesystem::directory_iterator(absl::StrCat("/proc/", pid, "/fd"))) {
      std::error_code ignored;
      std::string target = std::filesystem::read_symlink(fd.path(), ignored).string();
      if (!absl::StartsWith(target, "socket:[")) continue;
      count += listening.contains(target.substr(8, target.size() - 9)) ? 1 : 0;
    }
    return count;
  }
};

TEST_F(RestartTest, ARestartedKubeletIsRegisteredWithAgain) {
  MakeNode();
  StartAgent();
  ASSERT_TRUE(node_->kubelet().Restart().ok());
  EXPECT_TRUE(WaitForKubelet([this] { return AllHealthy(); }));
}

TEST_F(RestartTest, AKubeletThatComesLaterIsRegisteredWith) {
  MakeNode();
  node_->kubelet().Stop();
  StartAgent({}, /*wait=*/false);
  WaitForLog("event=kubelet_absent");
  ASSERT_TRUE(node_->kubelet().Start().ok());
  EXPECT_TRUE(WaitForKubelet([this] { return AllHealthy(); }));
}

TEST_F(RestartTest, AFailedRegisterIsTriedAgain) {
  MakeNode();
  node_->kubelet().FailRegisters(2);
  StartAgent({}, /*wait=*/false);
  WaitForLog("event=register_failed");
  EXPECT_TRUE(WaitForKubelet([this] { return AllHealthy(); }));
}

TEST_F(RestartTest, AStreamThatNeverComesIsAskedForAgain) {
  MakeNode();
  node_->kubelet().WithholdStreams(1);
  StartAgent({}, /*wait=*/false);
  WaitForLog("event=stream_missing");
  EXPECT_TRUE(WaitForKubelet([this] { return AllHealthy(); }));
}

TEST_F(RestartTest, AKilledAgentComesBackUnderANewSocketAndPodsKeepTheirGpus) {
  MakeNode();
  StartAgent();
  WaitForLog("event=fabric_up");
  const std::set<int> first = Modules(AddPod("a", 2));
  agent_->Kill();
  ASSERT_TRUE(WaitForKubelet([this] { return !Report().connected; }));
  StartAgent({}, /*wait=*/false);
  ASSERT_TRUE(WaitForKubelet([this] { return AllHealthy(); }));
  const std::set<int> second = Modules(AddPod("b", 2));
  EXPECT_TRUE(PartitionOf(second).has_value());
  for (const int module : second) EXPECT_FALSE(first.contains(module)) << module;
  EXPECT_EQ(Sockets(), 1) << "the killed agent's socket is left over";
}

TEST_F(RestartTest, AStoppedAgentLeavesNothingAndExitsWithZero) {
  MakeNode();
  StartAgent();
  EXPECT_EQ(agent_->Stop(), 0);
  for (const auto& entry : std::filesystem::directory_iterator(node_->paths().device_plugins())) {
    EXPECT_FALSE(entry.path().filename().string().starts_with("switchyard-")) << entry.path();
  }
  EXPECT_FALSE(std::filesystem::exists(node_->paths().agent_socket()));
}

TEST_F(RestartTest, ASecondAgentSaysWhoHoldsTheNodeAndExits) {
  MakeNode();
  StartAgent();
  const Finished second = RunBinary({"agent", "--config", folder_ + "/test.yaml"});
  EXPECT_EQ(second.code, 1);
  EXPECT_THAT(second.output, HasSubstr(absl::StrCat("process ", agent_->pid())));
  EXPECT_TRUE(AllHealthy());
}

TEST_F(RestartTest, AnAgentThatWaitsForTheLockServesNothingAndThenTakesOver) {
  MakeNode();
  StartAgent();
  const int registers = node_->kubelet().calls().counts().registers;
  auto second = Process::Start({SWITCHYARD_BIN_DIR "/switchyard", "agent", "--wait-lock",
                                "--config", folder_ + "/test.yaml"});
  ASSERT_TRUE(second.ok()) << second.status();
  const std::optional<std::string> waits = (*second)->WaitForLine("event=lock_waiting", kPatience);
  ASSERT_TRUE(waits.has_value()) << (*second)->Output();
  EXPECT_THAT(*waits, HasSubstr(absl::StrCat("process ", agent_->pid())));
  EXPECT_THAT(*waits, HasSubstr("switchyard agent --config"));

  // Nothing of it: kubelet was asked for nothing, no socket of its own, no port.
  EXPECT_TRUE(AllHealthy());
  EXPECT_EQ(node_->kubelet().calls().counts().registers, registers);
  EXPECT_EQ(Sockets(), 1);
  EXPECT_EQ(ListeningSocketsOf((*second)->pid()), 0);
  EXPECT_GT(ListeningSocketsOf(agent_->pid()), 0) << "the count can see them";
  const Finished standing_by = RunBinary({"probe", "--config", folder_ + "/test.yaml"});
  EXPECT_EQ(standing_by.code, 0) << "a DaemonSet ends the old pod when the new one is ready";
  EXPECT_THAT(standing_by.output,
              HasSubstr(absl::StrCat("standing by: the node's agent is process ", agent_->pid())));

  ASSERT_EQ(agent_->Stop(), 0);
  agent_ = *std::move(second);
  WaitForLog("event=lock_taken");
  WaitForLog("the agent is running");
  EXPECT_TRUE(WaitForKubelet([this] { return AllHealthy(); }));
  EXPECT_TRUE(AddPod("a", 2).admitted);
}

TEST_F(RestartTest, TheSecondTakesOverFromAKilledFirst) {
  MakeNode();
  StartAgent();
  auto second = Process::Start({SWITCHYARD_BIN_DIR "/switchyard", "agent", "--wait-lock=1h",
                                "--config", folder_ + "/test.yaml"});
  ASSERT_TRUE(second.ok()) << second.status();
  ASSERT_TRUE((*second)->WaitForLine("event=lock_waiting", kPatience).has_value());
  agent_->Kill();
  agent_ = *std::move(second);
  WaitForLog("the agent is running");
  EXPECT_TRUE(WaitForKubelet([this] { return AllHealthy(); }));
}

TEST_F(RestartTest, AWaitingAgentEndsAtSigtermAndAfterItsTime) {
  MakeNode();
  StartAgent();
  auto waiting = Process::Start({SWITCHYARD_BIN_DIR "/switchyard", "agent", "--wait-lock",
                                 "--config", folder_ + "/test.yaml"});
  ASSERT_TRUE(waiting.ok()) << waiting.status();
  ASSERT_TRUE((*waiting)->WaitForLine("event=lock_waiting", kPatience).has_value());
  EXPECT_EQ((*waiting)->Stop(), 0);
  EXPECT_TRUE((*waiting)->WaitForLine("nothing had been started", kPatience).has_value());

  const Finished impatient =
      RunBinary({"agent", "--wait-lock=10ms", "--config", folder_ + "/test.yaml"});
  EXPECT_EQ(impatient.code, 1);
  EXPECT_THAT(impatient.output,
              HasSubstr(absl::StrCat("is still held by process ", agent_->pid())));
  EXPECT_TRUE(AllHealthy());
}

TEST_F(RestartTest, FabricManagerMayBeAbsentAtTheStartAndComeLater) {
  MakeNode();
  node_->fm().Stop();
  StartAgent();
  WaitForLog("event=fabric_down");
  EXPECT_THAT(Get("/metrics"), HasSubstr("\nswitchyard_fabric_up 0\n"));
  EXPECT_THAT(Get("/readyz"), HasSubstr("\nwarning: fabric: "));
  EXPECT_TRUE(AddPod("early", 1).admitted);
  ASSERT_TRUE(node_->fm().Start().ok());
  WaitForLog("event=fabric_up");
  EXPECT_TRUE(PartitionOf(Modules(AddPod("a", 2))).has_value());
  EXPECT_THAT(Get("/metrics"), HasSubstr("\nswitchyard_fabric_up 1\n"));
  EXPECT_THAT(Get("/readyz"), HasSubstr("\nok: fabric\n"));
}

TEST_F(RestartTest, TheTableOutlivesFabricManagerAndTheAgent) {
  MakeNode();
  StartAgent();
  WaitForLog("event=fabric_up");
  ASSERT_EQ(agent_->Stop(), 0);
  node_->fm().Stop();
  StartAgent({}, /*wait=*/false);
  WaitForLog("event=fabric_down");
  ASSERT_TRUE(WaitForKubelet([this] { return AllHealthy(); }));
  for (const char* name : {"a", "b", "c", "d"}) {
    EXPECT_TRUE(PartitionOf(Modules(AddPod(name, 2))).has_value()) << name;
  }
}

TEST_F(RestartTest, AMissingLibraryIsANormalState) {
  MakeNode();
  StartAgent({{"fabric.library", "/nonexistent/libnvfm.so.1"}});
  EXPECT_THAT(WaitForLog("event=fabric_down"), HasSubstr("libnvfm"));
  EXPECT_TRUE(AddPod("a", 2).admitted);
}

TEST_F(RestartTest, AHangingFabricManagerNeverHoldsUpAPod) {
  MakeNode();
  FabricManagerFaults faults;
  faults.hang = FabricManagerFaults::Hang::kList;
  node_->fm().SetFaults(faults);
  StartAgent({{"fabric.timeout", "1s"}});
  ASSERT_TRUE(node_->fm().AwaitHeldCall(kPatience));
  EXPECT_TRUE(AddPod("a", 2).admitted);
  WaitForLog("event=fabric_down");
  node_->fm().SetFaults({});
  WaitForLog("event=fabric_up");
  EXPECT_TRUE(PartitionOf(Modules(AddPod("b", 2))).has_value());
}

TEST_F(RestartTest, ACrashInsideTheLibraryLeavesTheAgentAlone) {
  MakeNode();
  FabricManagerFaults faults;
  faults.crash_library = true;
  node_->fm().SetFaults(faults);
  StartAgent();
  WaitForLog("event=fabric_down");
  EXPECT_TRUE(AddPod("a", 1).admitted);
  node_->fm().SetFaults({});
  WaitForLog("event=fabric_up");
}

TEST_F(RestartTest, ATableThatBreaksTheRulesIsRefusedWholeAndTheFormerOneStays) {
  MakeNode();
  StartAgent();
  WaitForLog("event=fabric_up");
  FabricManagerFaults faults;
  faults.table = BrokenTable::kRepeatedGpu;
  node_->fm().SetFaults(faults);
  EXPECT_THAT(WaitForLog("event=fabric_down"), HasSubstr("GPU"));
  EXPECT_TRUE(PartitionOf(Modules(AddPod("a", 2))).has_value());
}

TEST_F(RestartTest, ACorruptStateFileIsSetAside) {
  MakeNode();
  ASSERT_TRUE(MakeFolders(node_->paths().state()).ok());
  ASSERT_TRUE(WriteFileAtomically(node_->paths().state() + "/switchyard.db",
                                  "no database at all, but long enough to look")
                  .ok());
  StartAgent();
  WaitForLog("event=state_set_aside");
  EXPECT_TRUE(AllHealthy());
}

TEST_F(RestartTest, ATakenHttpAddressStopsTheStartBeforeKubeletHearsOfIt) {
  MakeNode();
  const UniqueFd taken(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(::bind(taken.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(taken.get(), 1), 0);
  ASSERT_EQ(::getsockname(taken.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string text = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  StartAgent({{"http.address", absl::StrCat("\"", text, "\"")}}, /*wait=*/false);
  EXPECT_EQ(agent_->Wait(kPatience), 1);
  EXPECT_THAT(agent_->Output(), HasSubstr(text));
  EXPECT_EQ(node_->kubelet().calls().counts().registers, 0);
}

TEST_F(RestartTest, OffOnANodeWithAFabricIsWarnedOf) {
  MakeNode();
  StartAgent({{"fabric.mode", "\"off\""}});
  const std::string line = WaitForLog("fabric.mode is off");
  EXPECT_THAT(line, HasSubstr("NVSwitch"));
  EXPECT_THAT(line, HasSubstr("Fabric Manager listens at"));
}

TEST_F(RestartTest, ReadyOnceKubeletReadsTheDeviceList) {
  MakeNode();
  node_->kubelet().Stop();
  StartAgent({}, /*wait=*/false);
  WaitForLog("the agent is running");
  EXPECT_THAT(Get("/readyz"), HasSubstr("503 "));
  EXPECT_THAT(Get("/healthz"), HasSubstr("200 ok"));
  const Finished early = RunBinary({"probe", "--config", folder_ + "/test.yaml"});
  EXPECT_EQ(early.code, 1);
  EXPECT_THAT(early.output, HasSubstr("not ready: "));
  ASSERT_TRUE(node_->kubelet().Start().ok());
  WaitForLog("event=registered");
  ASSERT_TRUE(WaitForKubelet([this] { return AllHealthy(); }));
  EXPECT_THAT(Get("/readyz"), HasSubstr("200 "));
  EXPECT_EQ(RunBinary({"probe", "--config", folder_ + "/test.yaml"}).code, 0);
  ASSERT_EQ(agent_->Stop(), 0);
  const Finished gone = RunBinary({"probe", "--config", folder_ + "/test.yaml"});
  EXPECT_EQ(gone.code, 1);
  EXPECT_THAT(gone.output, HasSubstr("no agent of this container listens"));
}

}  // namespace
}  // namespace switchyard::sim
