// SPDX-License-Identifier: Apache-2.0
#include "pci/process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pci/testing/processes.h"

namespace switchyard::pci {
namespace {

using ::testing::HasSubstr;
using testing::NoCapabilities;
using testing::SysfsTree;

std::string Stat(const std::string& command, const std::string& rest) {
  return "4711 (" + command + ") " + rest;
}

TEST(ParseStatTest, FindsItsFieldsBehindAnyCommand) {
  for (const char* command : {"qemu", "a b", "x) Z 1 (y", ")", ""}) {
    const Result<ThreadState> state = ParseStat(
        Stat(command, "S 1 4711 4711 0 -1 4194560 9 0 0 0 5 7 0 0 20 0 12 0 881 0 0 0\n"));
    ASSERT_TRUE(state.ok()) << state.status();
    EXPECT_FALSE(state->kernel || state->exiting || state->over) << command;
    EXPECT_EQ(state->threads, 12);
  }
}

TEST(ParseStatTest, TellsExitingOverAndKernel) {
  const auto parse = [](char state, unsigned flags) {
    return *ParseStat(Stat("x", std::string(1, state) + " 1 7 7 0 -1 " + std::to_string(flags) +
                                    " 0 0 0 0 0 0 0 0 20 0 1 0 100\n"));
  };
  EXPECT_TRUE(parse('D', 0x400004).exiting);
  EXPECT_FALSE(parse('D', 0x400004).over);
  EXPECT_TRUE(parse('Z', 0x400004).over);
  EXPECT_TRUE(parse('X', 0x400004).over);
  EXPECT_TRUE(parse('I', 0x208040).kernel);
  EXPECT_FALSE(parse('S', 0x400000).kernel);
}

TEST(ParseStatTest, RefusesWhatIsNone) {
  for (const char* text : {"", "4711", "4711 (x", "4711 (x) ", "4711 (x) S 1 2",
                           "1 (x) S 1 7 7 0 -1 many 0 0 0 0 0 0 0 0 20 0 1 0",
                           "1 (x) SS 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseStat(text).status())) << text;
  }
}

TEST(DeepestCgroupTest, TakesTheDeepestPath) {
  EXPECT_EQ(DeepestCgroup("0::/a.slice/b.scope\n"), "/a.slice/b.scope");
  EXPECT_EQ(DeepestCgroup("12:pids:/kubepods/pod1/c\n4:memory:/user\n1:name=systemd:/\n0::/\n"),
            "/kubepods/pod1/c");
  EXPECT_EQ(DeepestCgroup("0::/system.slice/x.service/kube.slice:cri:9\n"),
            "/system.slice/x.service/kube.slice:cri:9");
  EXPECT_EQ(DeepestCgroup("0::/\n"), "");
  EXPECT_EQ(DeepestCgroup("nonsense\n"), "");
  EXPECT_EQ(DeepestCgroup(""), "");
}

TEST(ProcessesTest, AcceptsTheHostsOnly) {
  SysfsTree tree;
  tree.Link("proc/1/ns/pid", "pid:[4026531836]");
  EXPECT_TRUE(Processes::OfHost(tree.root()).ok());

  SysfsTree container;
  container.Link("proc/1/ns/pid", "pid:[4026532741]");
  const Status in_container = Processes::OfHost(container.root()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(in_container));
  EXPECT_THAT(std::string(in_container.message()), HasSubstr("hostPID: true"));
}

TEST(ProcessesTest, AcceptsAProcWhereThisProcessIsInTheFirstNamespace) {
  SysfsTree tree;
  tree.Link("proc/5/ns/pid", "pid:[4026531836]");
  tree.Link("proc/1/ns/pid", "pid:[4026532741]");
  EXPECT_FALSE(Processes::OfHost(tree.root()).ok());
  tree.Link("proc/self", "5");
  EXPECT_TRUE(Processes::OfHost(tree.root()).ok());
}

TEST(ProcessesTest, SaysWhatIsMissing) {
  SysfsTree tree;
  EXPECT_TRUE(absl::IsNotFound(Processes::OfHost(tree.root()).status()));
  std::filesystem::create_directories(tree.Path("proc"));
  const Status empty = Processes::OfHost(tree.root()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(empty));
  EXPECT_THAT(std::string(empty.message()), HasSubstr("paths.hostRoot"));
}

TEST(ProcessesTest, WithoutTheRightToReadProcess1NobodyCanTell) {
  SysfsTree tree;
  tree.Link("proc/1/ns/pid", "pid:[4026531836]");
  std::filesystem::permissions(tree.Path("proc/1/ns"), std::filesystem::perms::none);
  {
    const NoCapabilities weak;
    const Status refused = Processes::OfHost(tree.root()).status();
    EXPECT_TRUE(absl::IsPermissionDenied(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("SYS_PTRACE"));
  }
  std::filesystem::permissions(tree.Path("proc/1/ns"), std::filesystem::perms::owner_all);
}

TEST(ProcessesTest, ReadsThisProcessOfTheRealProc) {
  SysfsTree tree;
  tree.Link("proc/1/ns/pid", "pid:[4026531836]");
  tree.Link("proc/self", std::to_string(::getpid()));
  tree.Link("proc/" + std::to_string(::getpid()), "/proc/self");
  const Result<Processes> processes = Processes::OfHost(tree.root());
  ASSERT_TRUE(processes.ok()) << processes.status();
  EXPECT_EQ(processes->Self(), ::getpid());
  const Result<std::string> stat = processes->Read(::getpid(), "stat");
  ASSERT_TRUE(stat.ok()) << stat.status();
  const Result<ThreadState> state = ParseStat(*stat);
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_FALSE(state->kernel || state->exiting || state->over);
  EXPECT_GE(state->threads, 1);
  EXPECT_TRUE(absl::IsNotFound(processes->Read(99999999, "stat").status()));
}

}  // namespace
}  // namespace switchyard::pci
