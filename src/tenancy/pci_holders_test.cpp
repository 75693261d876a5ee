// SPDX-License-Identifier: Apache-2.0
// Device numbers over time. The node of GPU A is /dev/full, later /dev/zero; B gets A's former one.
#include "tenancy/pci_holders.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "base/testing/no_threads.h"
#include "pci/testing/processes.h"

namespace switchyard::tenancy {
namespace {

using pci::testing::Child;
using pci::testing::FakeProc;
using pci::testing::SysfsTree;

const PciAddress kA = PciAddress::Parse("0000:01:00.0").value();
const PciAddress kB = PciAddress::Parse("0000:02:00.0").value();

class PciHoldersTest : public ::testing::Test {
 protected:
  PciHoldersTest() : proc_(tree_), holders_(tree_.root(), clock_) {
    tree_.AddGpu("0000:01:00.0", 12);
    tree_.AddGpu("0000:02:00.0", 13);
    SetGroupNumber(12, "1:7\n");  // /dev/full
    SetGroupNumber(13, "1:9\n");  // /dev/urandom
    proc_.Show(process_.pid());
  }
  void SetGroupNumber(int group, const std::string& number) {
    tree_.Write("sys/class/vfio/" + std::to_string(group) + "/dev", number);
  }
  bool MayHold(const PciAddress& device) {
    const PciAddress both[] = {kA, kB};
    return holders_.Look(both).value().MayHold(device);
  }

  SysfsTree tree_;
  FakeProc proc_;
  RealClock clock_;
  PciHolders holders_;
  Child process_{[] {
    if (::open("/dev/full", O_RDWR) < 0) ::_exit(1);
  }};
};

// Its node is gone or another one, as after an unbind, and whoever had it open still has the
// device.
TEST_F(PciHoldersTest, AFormerNumberStillCounts) {
  EXPECT_TRUE(MayHold(kA));
  SetGroupNumber(12, "1:5\n");
  EXPECT_TRUE(MayHold(kA));
  EXPECT_FALSE(MayHold(kB));
}

// The kernel gives a number anew only once nobody has it open any more.
TEST_F(PciHoldersTest, ANumberThatAnotherDeviceHasNowIsThatOnes) {
  EXPECT_TRUE(MayHold(kA));
  SetGroupNumber(12, "1:5\n");
  SetGroupNumber(13, "1:7\n");
  EXPECT_TRUE(MayHold(kB));
  EXPECT_FALSE(MayHold(kA));
  const PciAddress alone[] = {kA};
  EXPECT_FALSE(holders_.Look(alone).value().MayHold(kA)) << "the other was not asked for";
}

TEST_F(PciHoldersTest, WithoutAThreadTheTimeAtMostIsWaited) {
  const PciAddress alone[] = {kA};
  const pci::Holders holders = holders_.Look(alone).value();
  ASSERT_TRUE(holders.MayHold(kA));
  const absl::Duration began = clock_.Monotonic();
  const auto wait = [&] { holders_.AwaitChange(holders, absl::Milliseconds(5)); };
  if (!switchyard::testing::WithoutThreads(wait))
    GTEST_SKIP() << "needs a kernel with seccomp filters (CONFIG_SECCOMP_FILTER)";
  EXPECT_GE(clock_.Monotonic() - began, absl::Milliseconds(5));
}

}  // namespace
}  // namespace switchyard::tenancy
