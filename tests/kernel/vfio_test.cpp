// SPDX-License-Identifier: Apache-2.0
// What the kernel itself does, where the product or the simulated sysfs relies on it. A new kernel
// that does otherwise fails here first.
#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "tests/kernel/guest.h"

namespace switchyard::kernel_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class KernelVfio : public Fixture {};

TEST_F(KernelVfio, AMonitorOpensADeviceByItsGroup) {
  EXPECT_THAT(TryToOpen({"container", "group=" + GroupNode(gpus_[0]), "viable", "attach",
                         "device=" + gpus_[0], "ids", "map"}),
              ElementsAre("container ok", "group ok", "viable 1", "viable ok", "attach ok",
                          "device ok", "ids 10de:2335", "ids ok", "map ok"));
}

TEST_F(KernelVfio, AMonitorOpensADeviceByItsCdev) {
  EXPECT_THAT(
      TryToOpen(ByCdev(gpus_[0]) + std::vector<std::string>{"ids"}),
      ElementsAre("iommufd ok", "cdev ok", "bind ok", "ioas ok", "ids 10de:2335", "ids ok"));
}

TEST_F(KernelVfio, AGroupIsOpenedOnce) {
  const auto holder = Hold({"group=" + GroupNode(gpus_[0])});
  EXPECT_THAT(TryToOpen({"group=" + GroupNode(gpus_[0])}), ElementsAre("group EBUSY"));
  EXPECT_THAT(TryToOpen({"group=" + GroupNode(gpus_[1])}), ElementsAre("group ok"));
}

TEST_F(KernelVfio, GroupAndCdevExcludeEachOther) {
  {
    const auto holder = Hold({"group=" + GroupNode(gpus_[0])});
    EXPECT_THAT(TryToOpen(ByCdev(gpus_[0])), ElementsAre("iommufd ok", "cdev ok", "bind EBUSY"));
  }
  const auto holder = Hold(ByCdev(gpus_[0]));
  EXPECT_THAT(TryToOpen(Legacy(gpus_[0])), ElementsAre("container ok", "group EBUSY"));
}

TEST_F(KernelVfio, ACdevOpensTwiceAndIsBoundOnce) {
  const auto holder = Hold(ByCdev(gpus_[0]));
  EXPECT_THAT(TryToOpen(ByCdev(gpus_[0])), ElementsAre("iommufd ok", "cdev ok", "bind EINVAL"));
}

TEST_F(KernelVfio, TheLastCdevTakesItsFolderWithIt) {
  for (size_t i = 0; i < gpus_.size(); ++i) {
    EXPECT_TRUE(Exists("/dev/vfio/devices")) << i;
    ASSERT_EQ(Unbind(gpus_[i]), 0);
  }
  EXPECT_FALSE(Exists("/dev/vfio/devices"));
  EXPECT_THAT(Names("/dev/vfio"), ElementsAre("vfio"));
  EXPECT_FALSE(Exists("/sys/devices/virtual/vfio"));
  EXPECT_TRUE(Exists("/sys/class/vfio-dev"));
  EXPECT_THAT(Names("/sys/class/vfio-dev"), IsEmpty());
}

TEST_F(KernelVfio, ACdevTakesTheLowestFreeNumber) {
  const std::string number = Cdev(gpus_[1]);
  ASSERT_EQ(Unbind(gpus_[1]), 0);
  ASSERT_EQ(Unbind(gpus_[2]), 0);
  Bind(gpus_[2], "vfio-pci");
  EXPECT_EQ(Cdev(gpus_[2]), number) << "another device's number of a moment before";
}

TEST_F(KernelVfio, AGroupsNodeStaysWhileOneMemberIsOnVfio) {
  const auto [card, audio] = InOneGroup(kRtx, kAudio);
  Bind(card, "vfio-pci");
  Bind(audio, "vfio-pci");
  const std::string node = GroupNode(card);
  ASSERT_EQ(Unbind(card), 0);
  EXPECT_TRUE(Exists(node));
  ASSERT_EQ(Unbind(audio), 0);
  EXPECT_FALSE(Exists(node));
}

TEST_F(KernelVfio, NewIdBindsEveryUnboundDeviceThatMatches) {
  for (const std::string& gpu : gpus_) Bind(gpu, "");
  Bind(gpus_[0], "pci-stub");
  ASSERT_EQ(Write("/sys/bus/pci/drivers/vfio-pci/new_id", "10de 2335"), 0);
  EXPECT_EQ(Driver(gpus_[0]), "pci-stub");
  for (size_t i = 1; i < gpus_.size(); ++i) EXPECT_EQ(Driver(gpus_[i]), "vfio-pci") << gpus_[i];
  ASSERT_EQ(Write("/sys/bus/pci/drivers/vfio-pci/remove_id", "10de 2335"), 0);
}

TEST_F(KernelVfio, AProbeThatFindsNoDriverIsNoErrorOfTheWrite) {
  Bind(gpus_[0], "");
  ASSERT_EQ(Write(SysfsFolder(gpus_[0]) + "/driver_override", "no-such-driver"), 0);
  EXPECT_EQ(Write("/sys/bus/pci/drivers_probe", gpus_[0]), 0);
  EXPECT_EQ(Driver(gpus_[0]), "");
}

TEST_F(KernelVfio, ADriverOverrideThatIsUnsetReadsAsNull) {
  EXPECT_EQ(Read(SysfsFolder(gpus_[0]) + "/driver_override"), "vfio-pci");
  ASSERT_EQ(Write(SysfsFolder(gpus_[0]) + "/driver_override", "\n"), 0);
  EXPECT_EQ(Read(SysfsFolder(gpus_[0]) + "/driver_override"), "(null)");
  EXPECT_EQ(Driver(gpus_[0]), "vfio-pci") << "what is bound stays";
}

// The order is what the simulated sysfs sends.
TEST_F(KernelVfio, EventsOfUnbindAndBind) {
  const std::string gpu = gpus_[0];
  const std::string cdev = Cdev(gpu);
  const std::string group = absl::StrCat("/devices/virtual/vfio/", Group(gpu), " ");
  Events events;
  ASSERT_EQ(Unbind(gpu), 0);
  events.WaitFor({"remove@", gpu + "/vfio-dev/" + cdev, "SUBSYSTEM=vfio-dev "});
  events.WaitFor({"remove@" + group, "SUBSYSTEM=vfio "});
  events.WaitFor({"unbind@", gpu, "SUBSYSTEM=pci "});
  Bind(gpu, "vfio-pci");
  events.WaitFor({"add@" + group, "SUBSYSTEM=vfio "});
  events.WaitFor({"add@", gpu + "/vfio-dev/" + cdev, "SUBSYSTEM=vfio-dev "});
  events.WaitFor({"bind@", gpu, "SUBSYSTEM=pci ", "DRIVER=vfio-pci "});
}

// Off the bus and back: a new device to the kernel, which remembers nothing of the old one.
TEST_F(KernelVfio, ADeviceThatReturnsHasItsGroupButNeitherDriverNorOverride) {
  const std::string gpu = gpus_[0];
  const int group = Group(gpu);
  Events events;
  ASSERT_EQ(Write(SysfsFolder(gpu) + "/remove", "1"), 0);
  events.WaitFor({"unbind@", gpu});
  events.WaitFor({"remove@", gpu, "SUBSYSTEM=pci "});
  EXPECT_FALSE(Exists(SysfsFolder(gpu)));
  EXPECT_FALSE(Exists(absl::StrCat("/sys/kernel/iommu_groups/", group)));
  ASSERT_EQ(Write("/sys/bus/pci/rescan", "1"), 0);
  events.WaitFor({"add@", gpu, "SUBSYSTEM=pci "});
  EXPECT_EQ(Group(gpu), group);
  EXPECT_EQ(Driver(gpu), "");
  EXPECT_EQ(Read(SysfsFolder(gpu) + "/driver_override"), "(null)");
}

}  // namespace
}  // namespace switchyard::kernel_test
