// SPDX-License-Identifier: Apache-2.0
// `switchyard holders` as a user and a script see it, on a tree with planted processes.
#include <gmock/gmock.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "apps/testing/run_program.h"
#include "pci/testing/processes.h"

namespace switchyard::apps {
namespace {

using nlohmann::json;
using pci::testing::FakeProc;
using pci::testing::SysfsTree;
using ::testing::HasSubstr;
using testing::Ran;
using testing::RunSwitchyard;

constexpr char kA[] = "0000:01:00.0";
constexpr char kB[] = "0000:02:00.0";
constexpr char kUid[] = "0d1e2f3a-4b5c-6d7e-8f90-a1b2c3d4e5f6";

class HoldersCommandTest : public ::testing::Test {
 protected:
  HoldersCommandTest() {
    tree_.AddGpu(kA, 12);
    tree_.AddGpu(kB, 13);
    tree_.Write("sys/class/vfio/12/dev", "1:7\n");  // /dev/full
    tree_.Write("sys/class/vfio/13/dev", "1:9\n");  // /dev/urandom
    proc_.Plant(77, "qemu-system-x86");
    proc_.Write(77, "cgroup", absl::StrCat("0::/kubepods/burstable/pod", kUid, "/compute\n"));
    proc_.Open(77, 8, "/dev/full");
  }
  Ran Run(std::vector<std::string> more) {
    more.insert(more.begin(), {"holders", "--paths-host-root", tree_.Path("")});
    return RunSwitchyard(more);
  }

  SysfsTree tree_;
  FakeProc proc_{tree_};
};

TEST_F(HoldersCommandTest, TheTableHasALineForEachHolderAndForEachDeviceOfNobody) {
  const Ran ran = Run({});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(
      ran.out,
      absl::StrCat("ADDRESS       PID  COMMAND          POD                                   "
                   "FILE\n0000:01:00.0  77   qemu-system-x86  ",
                   kUid, "  /dev/full\n0000:02:00.0  -    -                -", std::string(37, ' '),
                   "-\n"));
}

TEST_F(HoldersCommandTest, JsonHasExactlyTheContractsKeys) {
  const json all = json::parse(Run({"-o", "json"}).out, nullptr, false);
  EXPECT_EQ(all, json({{"devices",
                        {{{"address", kA},
                          {"mayBeHeld", true},
                          {"holders",
                           {{{"pid", 77},
                             {"command", "qemu-system-x86"},
                             {"podUid", kUid},
                             {"cgroup", absl::StrCat("/kubepods/burstable/pod", kUid, "/compute")},
                             {"file", "/dev/full"},
                             {"problem", nullptr}}}}},
                         {{"address", kB}, {"mayBeHeld", false}, {"holders", json::array()}}}},
                       {"anyDevice", json::array()},
                       {"unreadable", json::array()}}));
}

TEST_F(HoldersCommandTest, OnlyTheDevicesNamed) {
  const json one = json::parse(Run({kB, "-o", "json"}).out, nullptr, false);
  ASSERT_EQ(one["devices"].size(), 1u);
  EXPECT_EQ(one["devices"][0]["address"], kB);
  EXPECT_EQ(json::parse(Run({kB, kA, "-o", "json"}).out, nullptr, false)["devices"].size(), 2u);
}

TEST_F(HoldersCommandTest, WhoMayHoldAnyDeviceStandsBelow) {
  proc_.Plant(78, "other");
  proc_.Open(78, 9, "anon_inode:[vfio-device]");
  proc_.Plant(79, "ending", 'D', 0x400004);
  const Ran ran = Run({});
  EXPECT_THAT(ran.out, HasSubstr("process 78 (other) has anon_inode:[vfio-device] open, and nobody "
                                 "can say which device that is\n"));
  EXPECT_THAT(ran.out, HasSubstr("process 79 (ending) may have any device open: it is exiting"));
  EXPECT_EQ(json::parse(Run({"-o", "json"}).out, nullptr, false)["devices"][1]["mayBeHeld"], true);
}

TEST_F(HoldersCommandTest, ErrorsSayWhatToDo) {
  const Ran address = Run({"0000:1:2"});
  EXPECT_EQ(address.exit_code, 2);
  const Ran gone = Run({"0000:09:00.0"});
  EXPECT_EQ(gone.exit_code, 1);
  EXPECT_THAT(gone.err, HasSubstr("0000:09:00.0"));
  std::filesystem::remove_all(tree_.Path("proc/1"));
  tree_.Link("proc/1/ns/pid", "pid:[4026532741]");
  const Ran container = Run({});
  EXPECT_EQ(container.exit_code, 1);
  EXPECT_THAT(container.err, HasSubstr("hostPID: true"));
}

}  // namespace
}  // namespace switchyard::apps
