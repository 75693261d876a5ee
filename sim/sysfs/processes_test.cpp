// SPDX-License-Identifier: Apache-2.0
// Planted holders as the agent sees them: through pci::FindHolders on the same root.
#include "sim/sysfs/processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "pci/holders.h"

namespace switchyard::sim {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

const PciAddress kA = {.bus = 0x0f};
const PciAddress kB = {.bus = 0x2d};

class ProcessesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/proc.XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    root_ = folder;
    Result<Processes> made = Processes::Create(root_);
    ASSERT_TRUE(made.ok()) << made.status();
    processes_.emplace(*std::move(made));
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  pci::Holders Find() const {
    const std::vector<pci::DeviceNodes> devices = {{kA, {}}, {kB, {}}};
    const Result<pci::Holders> holders = pci::FindHolders(HostRoot(root_), devices);
    EXPECT_TRUE(holders.ok()) << holders.status();
    return holders.value_or(pci::Holders());
  }

  std::string root_;
  std::optional<Processes> processes_;
};

TEST_F(ProcessesTest, AHolderHoldsItsDeviceUntilItEnds) {
  EXPECT_THAT(Find().of, IsEmpty());
  const Result<pid_t> pid =
      processes_->Hold(kA, {"dev/vfio/12"}, {.command = "qemu", .pod_uid = "0d1e"});
  ASSERT_TRUE(pid.ok()) << pid.status();
  ASSERT_TRUE(processes_->Hold(kA, {}, {}).ok());
  const pci::Holders holders = Find();
  ASSERT_EQ(holders.of.count(kA), 1u);
  ASSERT_EQ(holders.of.at(kA).size(), 2u);
  EXPECT_EQ(holders.of.at(kA)[0].command, "qemu");
  EXPECT_THAT(holders.of.at(kA)[0].cgroup, HasSubstr("/pod0d1e/"));
  EXPECT_THAT(holders.unreadable, IsEmpty());
  EXPECT_FALSE(holders.MayHold(kB));

  EXPECT_EQ(processes_->Release(kB).value_or(-1), 0);
  EXPECT_TRUE(Find().MayHold(kA));
  EXPECT_EQ(processes_->Release(kA).value_or(-1), 2);
  EXPECT_FALSE(Find().MayHold(kA));
}

TEST_F(ProcessesTest, ARebootEndsAll) {
  ASSERT_TRUE(processes_->Hold(kA, {}, {}).ok());
  ASSERT_TRUE(processes_->Hold(kB, {}, {}).ok());
  EXPECT_EQ(Find().of.size(), 2u);
  ASSERT_EQ(processes_->ReleaseAll(), OkStatus());
  EXPECT_THAT(Find().of, IsEmpty());
  EXPECT_THAT(processes_->holders(), IsEmpty());
}

TEST_F(ProcessesTest, ACommandIsAsTheKernelKeepsIt) {
  for (const char* command : {"", "qemu-system-x86_64", "a b", "a\nb"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(processes_->Hold(kA, {}, {.command = command}).status()))
        << command;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(processes_->Hold(kA, {}, {.pod_uid = "../x"}).status()));
}

}  // namespace
}  // namespace switchyard::sim
