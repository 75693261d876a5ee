// SPDX-License-Identifier: Apache-2.0
// The IOMMU group of a device: who is a member, and when a VM could have all of it.
#include "pci/group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pci/testing/tree.h"

namespace switchyard::pci {
namespace {

using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Optional;
using testing::SysfsTree;

constexpr char kGpu[] = "0000:01:00.0";
constexpr char kAudio[] = "0000:01:00.1";

std::vector<std::string> Members(const Device& device) {
  std::vector<std::string> members;
  for (const Function& member : device.members) members.push_back(member.address.ToString());
  return members;
}

class GroupTest : public ::testing::Test {
 protected:
  GroupTest() { tree_.AddGpu(kGpu, 12); }

  void AddAudio(const std::optional<std::string>& driver) {
    tree_.AddFunction({.address = kAudio,
                       .class_code = testing::kClassAudio,
                       .device = 0x22ba,
                       .driver = driver,
                       .group = 12,
                       .numa_node = std::nullopt});
  }

  // As Scan and ReadDevice see it: they must agree.
  Device Read(const std::string& address = kGpu) {
    const PciAddress parsed = *PciAddress::Parse(address);
    const Result<Device> device = ReadDevice(tree_.root(), parsed);
    EXPECT_TRUE(device.ok()) << device.status();
    const Result<Inventory> inventory = Scan(tree_.root());
    EXPECT_TRUE(inventory.ok()) << inventory.status();
    if (!device.ok() || !inventory.ok()) return {};
    const Device* scanned = inventory->Find(parsed);
    EXPECT_NE(scanned, nullptr);
    if (scanned == nullptr) return {};
    EXPECT_EQ(Members(*scanned), Members(*device));
    EXPECT_EQ(scanned->problem, device->problem);
    EXPECT_EQ(scanned->backend, device->backend);
    return *device;
  }

  SysfsTree tree_;
};

TEST_F(GroupTest, ACompanionOnAForeignDriverIsNamedWithIt) {
  AddAudio("snd_hda_intel");
  const Device gpu = Read();
  EXPECT_THAT(Members(gpu), ElementsAre(kGpu, kAudio));
  ASSERT_FALSE(gpu.ready());
  EXPECT_THAT(*gpu.problem, HasSubstr("0000:01:00.1 of IOMMU group 12 is on snd_hda_intel"));
  EXPECT_THAT(*gpu.problem, HasSubstr("bind it to vfio-pci or unbind it"));
}

TEST_F(GroupTest, ACompanionOnVfioOrStubOrNothingLeavesTheGroupToAVm) {
  AddAudio("vfio-pci");
  for (const std::optional<std::string>& driver :
       {std::optional<std::string>("vfio-pci"), std::optional<std::string>("pci-stub"),
        std::optional<std::string>()}) {
    tree_.SetDriver(kAudio, driver);
    EXPECT_TRUE(Read().ready()) << driver.value_or("none");
  }
  tree_.SetDriver(kAudio, "mlx5_vfio_pci");
  EXPECT_FALSE(Read().ready());
  tree_.SetVfio(kAudio, 5);
  EXPECT_TRUE(Read().ready());
}

// Seen of Linux 6.12 (tests/kernel): for as long as somebody has the device open.
TEST_F(GroupTest, ADeviceThatIsBeingTakenFromItsDriverIsNotOneWithoutADriver) {
  tree_.SetDriver(kGpu, std::nullopt);
  tree_.SetFile(kGpu, "uevent", "DRIVER=vfio-pci\nPCI_CLASS=30200\n");
  EXPECT_THAT(Read().problem, Optional(HasSubstr("being taken from vfio-pci")));
  tree_.SetFile(kGpu, "uevent", "PCI_CLASS=30200\n");
  EXPECT_THAT(Read().problem, Optional(HasSubstr("no driver")));
}

// The same, for as long as the driver's probe takes.
TEST_F(GroupTest, ADeviceIsReadyOnceItsVfioDriverHasMadeItAVfioDevice) {
  EXPECT_TRUE(Read().ready()) << "a kernel before 6.1: nothing else to look at";
  tree_.Write("sys/class/vfio-dev/vfio9/uevent", "");
  EXPECT_THAT(Read().problem, Optional(HasSubstr("being bound to vfio-pci")));
  tree_.SetVfio(kGpu, 9, /*cdev=*/false);
  EXPECT_TRUE(Read().ready());
  tree_.SetVfio(kGpu, 9);
  EXPECT_TRUE(Read().ready());
}

TEST_F(GroupTest, TheGroupOfTheUnsafeModeIsNone) {
  tree_.Write("sys/kernel/iommu_groups/12/name", "vfio-noiommu\n");
  EXPECT_THAT(Read().problem, Optional(HasSubstr("unsafe no-IOMMU mode")));
  tree_.Write("sys/kernel/iommu_groups/12/name", "another\n");
  EXPECT_TRUE(Read().ready());
}

TEST_F(GroupTest, AllFourFunctionsOfAGpuAreMembersABridgeIsNot) {
  AddAudio("vfio-pci");
  tree_.AddFunction({.address = "0000:01:00.2", .class_code = 0x0c0330, .group = 12});
  tree_.AddFunction({.address = "0000:01:00.3", .class_code = 0x0c8000, .group = 12});
  tree_.AddFunction({.address = "0000:00:01.0",
                     .class_code = testing::kClassBridge,
                     .vendor = 0x8086,
                     .driver = "pcieport",
                     .group = 12});
  const Device gpu = Read();
  EXPECT_THAT(Members(gpu), ElementsAre(kGpu, kAudio, "0000:01:00.2", "0000:01:00.3"));
  EXPECT_TRUE(gpu.ready()) << *gpu.problem;
}

TEST_F(GroupTest, AnotherKindOfBridgeIsAMember) {
  tree_.AddFunction({.address = "0000:02:00.0",
                     .class_code = 0x068000,
                     .vendor = 0x1000,
                     .driver = "mpi3mr",
                     .group = 12});
  const Device gpu = Read();
  EXPECT_THAT(Members(gpu), ElementsAre(kGpu, "0000:02:00.0"));
  EXPECT_THAT(gpu.problem, Optional(HasSubstr("mpi3mr")));
}

TEST_F(GroupTest, TwoGpusShareOneLead) {
  tree_.AddGpu("0000:02:00.0", 12);
  const Device first = Read(kGpu);
  const Device second = Read("0000:02:00.0");
  EXPECT_EQ(Members(first), Members(second));
  EXPECT_EQ(first.Lead().ToString(), kGpu);
  EXPECT_EQ(second.Lead().ToString(), kGpu);
  EXPECT_TRUE(first.ready());
}

TEST_F(GroupTest, ALeadIsOfTheSameKind) {
  AddAudio("vfio-pci");
  tree_.AddNvSwitch("0000:00:07.0", 12);
  EXPECT_EQ(Read(kGpu).Lead().ToString(), kGpu);
  EXPECT_EQ(Read("0000:00:07.0").Lead().ToString(), "0000:00:07.0");
}

TEST_F(GroupTest, ADiskOfTheHostInTheGroupKeepsItFromAVm) {
  tree_.AddFunction({.address = "0000:03:00.0",
                     .class_code = testing::kClassNvme,
                     .vendor = 0x144d,
                     .driver = "nvme",
                     .group = 12});
  EXPECT_THAT(Read().problem, Optional(HasSubstr("0000:03:00.0 of IOMMU group 12 is on nvme")));
}

TEST_F(GroupTest, OtherGroupsDoNotMatter) {
  tree_.AddFunction({.address = kAudio,
                     .class_code = testing::kClassAudio,
                     .driver = "snd_hda_intel",
                     .group = 13});
  const Device gpu = Read();
  EXPECT_THAT(Members(gpu), ElementsAre(kGpu));
  EXPECT_TRUE(gpu.ready());
}

TEST_F(GroupTest, ATreeWithoutGroupListsStillHasTheLinks) {
  AddAudio("snd_hda_intel");
  std::filesystem::remove_all(tree_.Path("sys/kernel"));
  EXPECT_THAT(Members(Read()), ElementsAre(kGpu, kAudio));
  EXPECT_FALSE(Read().ready());
}

TEST_F(GroupTest, AMemberThatOnlyTheListNamesCounts) {
  AddAudio("snd_hda_intel");
  tree_.RemoveFile(kAudio, "iommu_group");
  EXPECT_THAT(Members(Read()), ElementsAre(kGpu, kAudio));
  EXPECT_FALSE(Read().ready());
}

TEST_F(GroupTest, AMemberThatCannotBeReadIsNamed) {
  AddAudio("vfio-pci");
  tree_.SetFile(kAudio, "class", "audio\n");
  const Device gpu = Read();
  EXPECT_THAT(Members(gpu), ElementsAre(kGpu));
  EXPECT_THAT(gpu.problem, Optional(HasSubstr("0000:01:00.1 of IOMMU group 12 can't be read")));
  EXPECT_THAT(gpu.problem, Optional(HasSubstr("class holds \"audio\"")));
}

TEST_F(GroupTest, AMemberThatIsNoPciFunctionIsNamed) {
  tree_.Link("sys/kernel/iommu_groups/12/devices/arm-smmu.0.auto", "../../nowhere");
  EXPECT_THAT(Read().problem, Optional(HasSubstr("arm-smmu.0.auto")));
}

TEST_F(GroupTest, AMemberThatClaimsAnotherGroupIsAContradiction) {
  AddAudio("vfio-pci");
  tree_.RemoveFile(kAudio, "iommu_group");
  tree_.Link("sys/devices/pci0000:00/0000:01:00.1/iommu_group", "../../../kernel/iommu_groups/40");
  EXPECT_THAT(Read().problem, Optional(HasSubstr("in group 40")));
}

TEST_F(GroupTest, WithoutAGroupItIsAloneAndSaysHowToGetOne) {
  AddAudio("snd_hda_intel");
  tree_.SetGroup(kGpu, std::nullopt);
  const Device gpu = Read();
  EXPECT_THAT(Members(gpu), ElementsAre(kGpu));
  EXPECT_THAT(gpu.problem, Optional(HasSubstr("intel_iommu=on")));
}

TEST_F(GroupTest, EveryReasonIsNamedUpToABound) {
  tree_.SetDriver(kGpu, "nvidia");
  for (int slot = 2; slot < 12; ++slot) {
    tree_.AddFunction({.address = absl::StrFormat("0000:%02x:00.0", slot),
                       .class_code = testing::kClassNvme,
                       .vendor = 0x144d,
                       .driver = "nvme",
                       .group = 12});
  }
  const Device gpu = Read();
  ASSERT_FALSE(gpu.ready());
  EXPECT_THAT(*gpu.problem, HasSubstr("on nvidia"));
  EXPECT_THAT(*gpu.problem, HasSubstr("0000:08:00.0"));
  EXPECT_THAT(*gpu.problem, Not(HasSubstr("0000:09:00.0")));
  EXPECT_THAT(*gpu.problem, HasSubstr("3 more"));
}

class ReadDeviceTest : public GroupTest {
 protected:
  Result<Device> Now() { return ReadDevice(tree_.root(), *PciAddress::Parse(kGpu)); }
};

TEST_F(ReadDeviceTest, WithoutIommufdACdevIsOfNoUse) {
  tree_.SetVfio(kGpu, 3);
  EXPECT_EQ(Now()->self.vfio_cdev, std::nullopt);
  EXPECT_EQ(Now()->backend, Backend::kLegacy);
  tree_.AddIommufd();
  EXPECT_THAT(Now()->self.vfio_cdev, Optional(Eq("vfio3")));
  EXPECT_EQ(Now()->backend, Backend::kIommufd);
}

TEST_F(ReadDeviceTest, NumbersAreThoseOfThisMoment) {
  tree_.AddIommufd();
  tree_.SetVfio(kGpu, 3);
  EXPECT_THAT(Now()->self.iommu_group, Optional(12));
  tree_.SetGroup(kGpu, 125);
  tree_.SetVfio(kGpu, 0);
  const Result<Device> after = Now();
  EXPECT_THAT(after->self.iommu_group, Optional(125));
  EXPECT_THAT(after->self.vfio_cdev, Optional(Eq("vfio0")));
  EXPECT_TRUE(after->ready());
}

TEST_F(ReadDeviceTest, AGoneDeviceIsNotFoundAndComesBack) {
  tree_.Remove(kGpu);
  EXPECT_TRUE(absl::IsNotFound(Now().status())) << Now().status();
  EXPECT_THAT(std::string(Now().status().message()), HasSubstr("gone"));
  tree_.AddGpu(kGpu, 12);
  EXPECT_TRUE(Now().ok());
  tree_.RemoveFolderOnly(kGpu);
  EXPECT_TRUE(absl::IsNotFound(Now().status()));
}

TEST_F(ReadDeviceTest, AMissingFileIsNotAGoneDevice) {
  tree_.RemoveFile(kGpu, "class");
  const Status status = Now().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(kGpu));
  EXPECT_THAT(std::string(status.message()), HasSubstr("class"));
}

TEST_F(ReadDeviceTest, LeavesAloneWhatAGrantDoesNotNeed) {
  tree_.RemoveFile(kGpu, "numa_node");
  tree_.RemoveFile(kGpu, "device");
  tree_.RemoveFile(kGpu, "resource");
  EXPECT_TRUE(Now().ok()) << Now().status();
}

TEST_F(ReadDeviceTest, TakesAScannedFunctionsClassForTheSameFolderOnly) {
  Function scanned = Now()->self;
  scanned.class_code = 0x040300;
  const auto read = [&] {
    return ReadDevice(tree_.root(), *PciAddress::Parse(kGpu), &scanned).status();
  };
  EXPECT_THAT(std::string(read().message()), HasSubstr("class 0x040300"));
  ++scanned.inode;
  EXPECT_TRUE(read().ok()) << "another folder is another device: its files are read";
}

TEST_F(ReadDeviceTest, RefusesWhatIsNoGpuOrNvSwitch) {
  AddAudio("vfio-pci");
  const Status status = ReadDevice(tree_.root(), *PciAddress::Parse(kAudio)).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("class 0x040300"));
}

// It would, were the whole bus read.
TEST_F(ReadDeviceTest, ABrokenBystanderDoesNotMatter) {
  tree_.AddFunction({.address = "0000:09:00.0", .vendor = 0x8086});
  tree_.Link("sys/devices/pci0000:00/0000:09:00.0/iommu_group", "not-a-number");
  EXPECT_TRUE(Now().ok());
  std::filesystem::remove_all(tree_.Path("sys/kernel"));
  EXPECT_FALSE(Now().ok()) << "without the list, the broken one may be a member";
}

}  // namespace
}  // namespace switchyard::pci
