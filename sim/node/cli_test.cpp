// SPDX-License-Identifier: Apache-2.0
// The program as a user runs it: what `up` makes, `down` removes, whatever happened in between.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "sim/node/namespaces.h"
#include "sim/node/record.h"

namespace switchyard::sim {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;
namespace fs = std::filesystem;

struct Outcome {
  int code = -1;
  std::string output;  // both streams
};

class CliTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/ct.XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    parent_ = folder;
    dir_ = parent_ + "/n";
  }
  void TearDown() override {
    (void)Run("down");
    fs::remove_all(parent_);
  }

  static std::string Command(const std::string& arguments, const std::string& dir) {
    return absl::StrCat("exec ", SWITCHYARD_BIN_DIR, "/switchyard-sim --dir ", dir, " ", arguments,
                        " 2>&1");
  }
  Outcome Run(const std::string& arguments) const {
    Outcome outcome;
    FILE* pipe = popen(Command(arguments, dir_).c_str(), "r");
    if (pipe == nullptr) return outcome;
    char buffer[4096];
    while (const size_t n = fread(buffer, 1, sizeof(buffer), pipe))
      outcome.output.append(buffer, n);
    const int status = pclose(pipe);
    outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return outcome;
  }
  // Ends the node; nothing of it may be left on the machine.
  void DownLeavesNothing() const {
    const Record record = ReadRecord(NodePaths(dir_)).value();
    const Outcome down = Run("down");
    EXPECT_EQ(down.code, 0) << down.output;
    EXPECT_FALSE(fs::exists(dir_));
    EXPECT_THAT(Mounts(), Not(HasSubstr(dir_)));
    for (const std::string& folder : record.made_folders) {
      EXPECT_FALSE(fs::exists(folder)) << folder << " (is another simulator up?)";
    }
  }
  Json StatusJson() const {
    const Outcome outcome = Run("status -o json");
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    return Json::parse(outcome.output, nullptr, false);
  }
  pid_t Pid() const { return RunningSimulator(NodePaths(dir_)).value_or(0); }
  static std::string Mounts() {
    std::ifstream file("/proc/self/mounts");
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  std::string parent_;
  std::string dir_;
};

TEST_F(CliTest, UpFaultStatusDown) {
  const Outcome up = Run("up --board hgx-h100 --seed 3");
  ASSERT_EQ(up.code, 0) << up.output;
  EXPECT_THAT(up.output, HasSubstr("switchyard agent --config " + dir_ + "/agent.yaml"));
  EXPECT_EQ(StatusJson()["gpus"].size(), 8u);

  const Outcome fault = Run("fault device 3 vanish");
  EXPECT_EQ(fault.code, 0) << fault.output;
  EXPECT_EQ(StatusJson()["gpus"][2]["present"], false);
  EXPECT_EQ(Run("fault device 3 vanish").code, 1);  // it is gone already

  EXPECT_EQ(Run("fabric activate 3").code, 0);
  EXPECT_THAT(Run("fabric list").output, HasSubstr("3  active   {1,3}"));
  EXPECT_EQ(Run("fabric show").output, Run("fabric list").output);
  const Outcome again = Run("fabric activate 3");
  EXPECT_EQ(again.code, 1);
  EXPECT_THAT(again.output, HasSubstr("partition 3: Fabric Manager answers -7"));
  const Outcome warm = Run("fault fm restart --warm --code 22");
  EXPECT_EQ(warm.code, 0) << warm.output;
  EXPECT_THAT(warm.output, HasSubstr("answers other calls with -22"));
  EXPECT_EQ(StatusJson()["fm"]["waiting"], true);
  EXPECT_EQ(Run("fault fm code 10 activate").code, 0);
  EXPECT_EQ(Run("fault fm restart --cold").code, 0);
  EXPECT_EQ(StatusJson()["fm"]["waiting"], false);
  EXPECT_EQ(Run("fault fm down").code, 0);
  EXPECT_EQ(StatusJson()["fm"]["running"], false);

  DownLeavesNothing();
  EXPECT_EQ(Run("down").code, 0);  // and nothing more to do
}

TEST_F(CliTest, DownRemovesWhatAKilledSimulatorLeft) {
  ASSERT_EQ(Run("up").code, 0);
  ASSERT_EQ(kill(Pid(), SIGKILL), 0);
  while (Pid() != 0) {  // its lock goes with it, in the kernel's time
    sched_yield();
  }
  EXPECT_EQ(Run("status").code, 1);
  const Outcome up = Run("up");
  EXPECT_EQ(up.code, 1);
  EXPECT_THAT(up.output, HasSubstr("switchyard-sim down --dir " + dir_));
  DownLeavesNothing();
}

TEST_F(CliTest, UpTwiceNamesTheFirst) {
  ASSERT_EQ(Run("up").code, 0);
  const pid_t first = Pid();
  const Outcome second = Run("up");
  EXPECT_EQ(second.code, 1);
  EXPECT_THAT(second.output, HasSubstr(absl::StrCat("process ", first)));
  EXPECT_EQ(Pid(), first);
}

TEST_F(CliTest, AFolderOfSomebodyElseIsLeftAlone) {
  ASSERT_EQ(MakeFolders(dir_), OkStatus());
  ASSERT_EQ(WriteFileAtomically(dir_ + "/thesis.txt", "mine"), OkStatus());
  EXPECT_THAT(Run("up").output, HasSubstr("thesis.txt"));
  EXPECT_EQ(Run("up").code, 1);
  EXPECT_EQ(Run("down").code, 1);
  EXPECT_EQ(ReadFile(dir_ + "/thesis.txt", 10).value_or(""), "mine");
}

TEST_F(CliTest, AFailedUpLeavesNothing) {
  const Outcome board = Run("up --board hgx-9000");
  EXPECT_EQ(board.code, 1);
  EXPECT_THAT(board.output, HasSubstr("hgx-h100"));
  EXPECT_FALSE(fs::exists(dir_));
  // This one fails in the daemon, when all has been made.
  const Outcome driver = Run("up --driver a/b");
  EXPECT_EQ(driver.code, 1);
  EXPECT_THAT(driver.output, HasSubstr("driver \"a/b\""));
  EXPECT_FALSE(fs::exists(dir_));
  EXPECT_THAT(Mounts(), Not(HasSubstr(dir_)));
}

TEST_F(CliTest, WrongUsageIsTwo) {
  for (const char* arguments :
       {"", "fly", "fault", "fault device 3", "fault fm latency", "fault fm latency soon",
        "fault fm restart", "fault fm restart --warm --cold", "fault fm code", "status -o xml",
        "up --iommufd maybe", "clock advance soon", "pod add", "exec"}) {
    EXPECT_EQ(Run(arguments).code, 2) << arguments;
  }
  for (const char* arguments : {"--help", "up --help", "fault device --help", "pod add --help"}) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.code, 0) << arguments;
    EXPECT_THAT(outcome.output, HasSubstr("switchyard-sim ")) << arguments;
  }
}

TEST_F(CliTest, ExecRunsInsideAndGivesTheCommandsExitCode) {
  ASSERT_EQ(Run("up").code, 0);
  EXPECT_EQ(Run("exec -- sh -c 'exit 7'").code, 7);
  EXPECT_THAT(Run("exec -- sh -c 'echo $LD_LIBRARY_PATH'").output, HasSubstr(dir_ + "/lib"));
  EXPECT_THAT(Run("exec -- sh -c 'echo $SWITCHYARD_PATHS_HOST_ROOT'").output,
              HasSubstr(dir_ + "/root\n"));
  EXPECT_EQ(Run("exec -- /no/such/program").code, 1);
  if (!CanMakeNamespaces()) GTEST_SKIP() << "namespaces need root: run this test as root";
  EXPECT_EQ(Run("exec -- test -S /run/nvidia-fabricmanager/socket").code, 0);
  EXPECT_EQ(Run("exec -- test -S /var/lib/kubelet/device-plugins/kubelet.sock").code, 0);
  // Loopback, and Fabric Manager's own port: 6666 is 1A0A, 0A is LISTEN.
  EXPECT_THAT(Run("exec -- cat /proc/net/tcp").output, HasSubstr("0100007F:1A0A 00000000:0000 0A"));
  EXPECT_FALSE(fs::exists("/run/nvidia-fabricmanager/socket"));
}

TEST_F(CliTest, TwoSimulatorsAreApart) {
  ASSERT_EQ(Run("up").code, 0);
  const std::string first = dir_;
  dir_ = parent_ + "/m";
  ASSERT_EQ(Run("up --board hgx-b200").code, 0);
  EXPECT_EQ(StatusJson()["board"]["name"], "hgx-b200");
  EXPECT_EQ(Run("down").code, 0);
  dir_ = first;
  EXPECT_EQ(StatusJson()["board"]["name"], "hgx-h100");
  if (CanMakeNamespaces()) {
    EXPECT_EQ(Run("exec -- test -S /run/nvidia-fabricmanager/socket").code, 0);
  }
}

TEST_F(CliTest, KubeletAloneGoesWithItsSignal) {
  FILE* pipe = popen(Command("kubelet", dir_).c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  char line[256] = {};
  ASSERT_NE(fgets(line, sizeof(line), pipe), nullptr);
  EXPECT_THAT(line, HasSubstr(dir_ + "/kubelet/device-plugins"));
  EXPECT_TRUE(fs::exists(dir_ + "/kubelet/device-plugins/kubelet.sock"));
  EXPECT_EQ(Run("fault kubelet restart").code, 0);
  EXPECT_EQ(Run("fault fm down").code, 1);
  ASSERT_EQ(kill(Pid(), SIGTERM), 0);
  EXPECT_EQ(pclose(pipe), 0);
  EXPECT_FALSE(fs::exists(dir_));
}

TEST_F(CliTest, HardwareIsANodeWithoutKubelet) {
  FILE* pipe = popen(Command("hardware --board hgx-b200 --iommufd on", dir_).c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  char line[256] = {};
  ASSERT_NE(fgets(line, sizeof(line), pipe), nullptr);
  EXPECT_THAT(line, HasSubstr("hgx-b200: " + dir_ + "/root, unix:" + dir_ + "/fm/socket"));
  const Json status = StatusJson();
  EXPECT_EQ(status["iommufd"], true);
  EXPECT_EQ(status["fm"]["running"], true);
  EXPECT_FALSE(status.contains("kubelet"));
  EXPECT_FALSE(fs::exists(dir_ + "/kubelet"));
  EXPECT_EQ(Run("status").code, 0);
  EXPECT_EQ(Run("fault device 3 vanish").code, 0);
  EXPECT_EQ(StatusJson()["gpus"][2]["present"], false);
  EXPECT_EQ(Run("fault kubelet restart").code, 1);
  ASSERT_EQ(kill(Pid(), SIGTERM), 0);
  EXPECT_EQ(pclose(pipe), 0);
  EXPECT_FALSE(fs::exists(dir_));
}

TEST_F(CliTest, SysfsAloneIsAPlainTree) {
  const Outcome outcome = Run("sysfs --board hgx-a100-16");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_EQ(outcome.output, dir_ + "/root\n");
  EXPECT_TRUE(fs::exists(dir_ + "/root/sys/bus/pci/devices"));
  EXPECT_EQ(Run("sysfs").code, 1);  // not over another one
  fs::remove_all(dir_);
}

}  // namespace
}  // namespace switchyard::sim
