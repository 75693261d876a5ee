// SPDX-License-Identifier: Apache-2.0
// Taking a device away from somebody: when the kernel waits, what is to be seen meanwhile, and that
// the product does not take such a device for one that a VM can have.
#include <gmock/gmock.h>

#include "absl/strings/str_join.h"
#include "pci/inventory.h"
#include "tests/kernel/guest.h"

namespace switchyard::kernel_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Optional;

class KernelUnbind : public Fixture {
 protected:
  // An unbind that waits in the kernel has taken the links and the cdev away, not the group's node.
  void ExpectBlocked(const std::vector<std::string>& steps, const std::string& gpu) {
    SCOPED_TRACE(absl::StrJoin(steps, " "));
    std::unique_ptr<sim::Process> holder = Hold(steps);
    ASSERT_NE(holder, nullptr);
    Events events;
    Writer unbind("/sys/bus/pci/drivers/vfio-pci/unbind", gpu);
    events.WaitFor({"remove@", gpu + "/vfio-dev/"});
    EXPECT_TRUE(unbind.Sleeps());
    EXPECT_EQ(Driver(gpu), "");
    EXPECT_THAT(Read(SysfsFolder(gpu) + "/uevent"), HasSubstr("DRIVER=vfio-pci"));
    EXPECT_FALSE(Exists(SysfsFolder(gpu) + "/vfio-dev"));
    EXPECT_TRUE(Exists(GroupNode(gpu)));
    const Result<pci::Device> device =
        pci::ReadDevice(HostRoot("/"), PciAddress::Parse(gpu).value());
    ASSERT_TRUE(device.ok()) << device.status();
    EXPECT_THAT(device->problem, Optional(HasSubstr("being taken from vfio-pci")));
    holder.reset();
    EXPECT_EQ(unbind.Wait(), 0);
    EXPECT_THAT(Read(SysfsFolder(gpu) + "/uevent"), Not(HasSubstr("DRIVER=")));
    EXPECT_FALSE(Exists(GroupNode(gpu)));
    Bind(gpu, "vfio-pci");
  }
};

TEST_F(KernelUnbind, AnOpenGroupDoesNotKeepADevice) {
  const auto holder = Hold({"container", "group=" + GroupNode(gpus_[0]), "attach"});
  ASSERT_NE(holder, nullptr);
  Writer unbind("/sys/bus/pci/drivers/vfio-pci/unbind", gpus_[0]);
  EXPECT_EQ(unbind.Wait(), 0);
  EXPECT_EQ(Driver(gpus_[0]), "");
}

TEST_F(KernelUnbind, AnOpenDeviceKeepsIt) {
  ExpectBlocked(Legacy(gpus_[0]), gpus_[0]);
  ExpectBlocked(Legacy(gpus_[0]) + std::vector<std::string>{"close=group", "close=container"},
                gpus_[0]);
}

TEST_F(KernelUnbind, AnOpenCdevKeepsItEvenIfItWasNeverBound) {
  ExpectBlocked(ByCdev(gpus_[0]), gpus_[0]);
  ExpectBlocked({"cdev=" + CdevNode(gpus_[0])}, gpus_[0]);
}

TEST_F(KernelUnbind, AMappingKeepsItAfterEveryDescriptorWasClosed) {
  ExpectBlocked(Legacy(gpus_[0]) + std::vector<std::string>{"map", "close=device", "close=group",
                                                            "close=container"},
                gpus_[0]);
  ExpectBlocked(ByCdev(gpus_[0]) + std::vector<std::string>{"map", "close=device", "close=iommufd"},
                gpus_[0]);
}

TEST_F(KernelUnbind, ADeviceInASocketKeepsIt) {
  ExpectBlocked(
      Legacy(gpus_[0]) + std::vector<std::string>{"in-flight", "close=group", "close=container"},
      gpus_[0]);
}

TEST_F(KernelUnbind, AHolderThatAskedToBeToldIsTold) {
  for (const std::vector<std::string>& opened : {Legacy(gpus_[0]), ByCdev(gpus_[0])}) {
    const auto holder = Hold(opened + std::vector<std::string>{"request"});
    ASSERT_NE(holder, nullptr);
    Writer unbind("/sys/bus/pci/drivers/vfio-pci/unbind", gpus_[0]);
    EXPECT_TRUE(holder->WaitForLine("asked", kPatience).has_value());
    EXPECT_EQ(unbind.Wait(), 0) << "the holder ended when it was asked";
    Bind(gpus_[0], "vfio-pci");
  }
}

// As sysfs' "remove", one that falls off the bus waits for its holder, with a lock of the bus held.
TEST_F(KernelUnbind, ARemovalWaitsForTheHolderAndOthersWaitForIt) {
  std::unique_ptr<sim::Process> holder = Hold(ByCdev(gpus_[0]));
  ASSERT_NE(holder, nullptr);
  Events events;
  Writer remove(SysfsFolder(gpus_[0]) + "/remove", "1");
  events.WaitFor({"remove@", gpus_[0] + "/vfio-dev/"});
  Writer other(SysfsFolder(gpus_[1]) + "/remove", "1");
  EXPECT_TRUE(remove.Sleeps());
  EXPECT_TRUE(other.Sleeps());
  EXPECT_TRUE(Exists(SysfsFolder(gpus_[1]) + "/vfio-dev")) << "held by nobody, and yet not begun";
  holder.reset();
  EXPECT_EQ(remove.Wait(), 0);
  EXPECT_EQ(other.Wait(), 0);
  EXPECT_FALSE(Exists(SysfsFolder(gpus_[0])));
  EXPECT_FALSE(Exists(SysfsFolder(gpus_[1])));
  ASSERT_EQ(Write("/sys/bus/pci/rescan", "1"), 0);
}

}  // namespace
}  // namespace switchyard::kernel_test
