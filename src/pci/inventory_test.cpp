// SPDX-License-Identifier: Apache-2.0
// Scan: which devices are found, what is read of each, and that one bad device stays one.
#include "pci/inventory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pci/testing/tree.h"

namespace switchyard::pci {
namespace {

using ::testing::ElementsAre;
using ::testing::Eq;
using testing::FakeFunction;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;
using testing::SysfsTree;

constexpr char kGpu[] = "0000:19:00.0";
constexpr char kOther[] = "0000:3b:00.0";

Inventory ScanOrDie(const SysfsTree& tree) {
  const Result<Inventory> inventory = Scan(tree.root());
  EXPECT_TRUE(inventory.ok()) << inventory.status();
  return inventory.ok() ? *inventory : Inventory{};
}

std::vector<std::string> Addresses(const Inventory& inventory) {
  std::vector<std::string> addresses;
  for (const Device& device : inventory.devices) addresses.push_back(device.address().ToString());
  return addresses;
}

// A healthy GPU beside whatever a test breaks.
class InventoryTest : public ::testing::Test {
 protected:
  InventoryTest() { tree_.AddGpu(kGpu, 12, 1); }
  SysfsTree tree_;
};

TEST_F(InventoryTest, ReadsWhatSysfsSaysOfAGpu) {
  const Inventory inventory = ScanOrDie(tree_);
  ASSERT_THAT(Addresses(inventory), ElementsAre(kGpu));
  const Device& gpu = inventory.devices[0];
  EXPECT_EQ(gpu.self.class_code, 0x030200u);
  EXPECT_EQ(gpu.self.vendor, 0x10de);
  EXPECT_EQ(gpu.self.device, 0x2330);
  EXPECT_THAT(gpu.self.driver, Optional(Eq("vfio-pci")));
  EXPECT_TRUE(gpu.self.on_vfio);
  EXPECT_THAT(gpu.self.iommu_group, Optional(12));
  EXPECT_THAT(gpu.self.numa_node, Optional(1));
  EXPECT_TRUE(gpu.ready());
  EXPECT_THAT(inventory.problems, IsEmpty());
}

TEST_F(InventoryTest, TakesGpusAndNvSwitchesOfNvidiaOnly) {
  tree_.AddFunction({.address = "0000:01:00.0", .class_code = testing::kClassVga, .group = 1});
  tree_.AddFunction({.address = "0000:01:00.1", .class_code = testing::kClassAudio, .group = 2});
  tree_.AddNvSwitch("0000:07:00.0", 3);
  tree_.AddFunction({.address = "0000:08:00.0", .vendor = 0x1002, .group = 4});
  tree_.AddFunction({.address = "0000:09:00.0",
                     .class_code = testing::kClassNvSwitch,
                     .vendor = 0x15b3,
                     .group = 5});
  const Inventory inventory = ScanOrDie(tree_);
  EXPECT_THAT(Addresses(inventory), ElementsAre("0000:01:00.0", "0000:07:00.0", kGpu));
  EXPECT_TRUE(inventory.devices[0].self.IsGpu());
  EXPECT_TRUE(inventory.devices[1].self.IsNvSwitch());
  EXPECT_FALSE(inventory.devices[1].self.IsGpu());
}

// Consumer boards have no SR-IOV files at all, data-centre boards without virtual functions a 0.
TEST_F(InventoryTest, SriovFilesMayBeAbsent) {
  tree_.AddGpu(kOther, 13);
  tree_.SetFile(kOther, "sriov_totalvfs", "16\n");
  tree_.SetFile(kOther, "sriov_numvfs", "0\n");
  const Inventory inventory = ScanOrDie(tree_);
  EXPECT_THAT(Addresses(inventory), ElementsAre(kGpu, kOther));
  EXPECT_THAT(inventory.problems, IsEmpty());
}

TEST_F(InventoryTest, FindsByAddressWhateverTheSpelling) {
  const Inventory inventory = ScanOrDie(tree_);
  const Device* found = inventory.Find(*PciAddress::Parse("00000000:19:00.0"));
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->address().ToString(), kGpu);
  EXPECT_EQ(inventory.Find(*PciAddress::Parse("0001:19:00.0")), nullptr);
}

TEST_F(InventoryTest, Gb200InAnotherDomainOnItsOwnVfioDriver) {
  for (const char* driver : {"nvgrace_gpu_vfio_pci", "nvgrace-gpu-vfio-pci"}) {
    SysfsTree tree;
    tree.AddFunction({.address = "0008:01:00.0", .device = 0x2941, .driver = driver, .group = 20});
    const Inventory inventory = ScanOrDie(tree);
    ASSERT_THAT(Addresses(inventory), ElementsAre("0008:01:00.0"));
    EXPECT_TRUE(inventory.devices[0].self.on_vfio) << driver;
    EXPECT_TRUE(inventory.devices[0].ready()) << *inventory.devices[0].problem;
  }
}

TEST_F(InventoryTest, AnyDriverThatExposesVfioDevIsAVfioDriver) {
  tree_.AddFunction({.address = kOther, .driver = "tomorrows_gpu_vfio", .group = 13, .vfio = 4});
  tree_.AddFunction({.address = "0000:3c:00.0", .driver = "vfio-pretender", .group = 14});
  const Inventory inventory = ScanOrDie(tree_);
  ASSERT_THAT(Addresses(inventory), ElementsAre(kGpu, kOther, "0000:3c:00.0"));
  EXPECT_TRUE(inventory.devices[1].ready());
  EXPECT_FALSE(inventory.devices[2].self.on_vfio);
  EXPECT_FALSE(inventory.devices[2].ready());
}

TEST_F(InventoryTest, OfThreeA40OnlyTheOneOnVfioIsReady) {
  SysfsTree tree;
  FakeFunction a40 = {.address = "0000:41:00.0", .device = 0x2235, .driver = "nvidia", .group = 1};
  tree.AddFunction(a40);
  a40.address = "0000:42:00.0", a40.driver = "vfio-pci", a40.group = 2;
  tree.AddFunction(a40);
  a40.address = "0000:43:00.0", a40.driver = std::nullopt, a40.group = 3;
  tree.AddFunction(a40);
  const Inventory inventory = ScanOrDie(tree);
  ASSERT_EQ(inventory.devices.size(), 3u);
  EXPECT_THAT(inventory.devices[0].problem, Optional(HasSubstr("on nvidia")));
  EXPECT_EQ(inventory.devices[0].backend, std::nullopt);
  EXPECT_TRUE(inventory.devices[1].ready());
  EXPECT_THAT(inventory.devices[2].problem, Optional(HasSubstr("no driver: bind it to vfio-pci")));
  EXPECT_EQ(inventory.devices[2].self.driver, std::nullopt);
}

TEST_F(InventoryTest, AnUnknownNumaNodeIsNotNodeZero) {
  tree_.SetFile(kGpu, "numa_node", "-1\n");
  const Inventory inventory = ScanOrDie(tree_);
  ASSERT_EQ(inventory.devices.size(), 1u);
  EXPECT_EQ(inventory.devices[0].self.numa_node, std::nullopt);
}

TEST_F(InventoryTest, BarsHaveSizesAndWidths) {
  // As an H100's: 16 MiB, 128 GiB and 32 MiB of 64 bits; an I/O region and a ROM, which are none.
  tree_.SetFile(kGpu, "resource",
                "0x0000380042000000 0x0000380042ffffff 0x000000000014220c\n"
                "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
                "0x0000360000000000 0x0000361fffffffff 0x000000000014220c\n"
                "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
                "0x00000000e0000000 0x00000000e1ffffff 0x0000000000040200\n"
                "0x0000000000003000 0x000000000000307f 0x0000000000040101\n"
                "0x00000000f0000000 0x00000000f007ffff 0x0000000000046200\n");
  const Inventory inventory = ScanOrDie(tree_);
  ASSERT_EQ(inventory.devices.size(), 1u);
  const std::vector<Bar>& bars = inventory.devices[0].self.bars;
  ASSERT_EQ(bars.size(), 3u);
  EXPECT_EQ(bars[0].bytes, 16u << 20);
  EXPECT_EQ(bars[1].index, 2);
  EXPECT_EQ(bars[1].bytes, std::uint64_t{128} << 30);
  EXPECT_TRUE(bars[1].is_64bit);
  EXPECT_EQ(bars[2].index, 4);
  EXPECT_FALSE(bars[2].is_64bit);
}

TEST_F(InventoryTest, NoResourceFileIsNoBars) {
  const Inventory inventory = ScanOrDie(tree_);
  ASSERT_EQ(inventory.devices.size(), 1u);
  EXPECT_THAT(inventory.devices[0].self.bars, IsEmpty());
}

TEST_F(InventoryTest, TheBackendIsDecidedPerDevice) {
  tree_.AddFunction({.address = kOther, .group = 13, .vfio = 3});
  tree_.AddFunction({.address = "0000:3c:00.0", .driver = "nvidia", .group = 14});
  Inventory inventory = ScanOrDie(tree_);
  ASSERT_EQ(inventory.devices.size(), 3u);
  EXPECT_EQ(inventory.devices[1].backend, Backend::kLegacy) << "no /dev/iommu";
  EXPECT_THAT(inventory.devices[1].self.vfio_cdev, Optional(Eq("vfio3")));

  tree_.AddIommufd();
  inventory = ScanOrDie(tree_);
  EXPECT_EQ(inventory.devices[0].backend, Backend::kLegacy) << "no cdev";
  EXPECT_EQ(inventory.devices[1].backend, Backend::kIommufd);
  EXPECT_EQ(inventory.devices[2].backend, std::nullopt) << "on nvidia";

  tree_.SetVfio(kOther, 3, /*cdev=*/false);
  inventory = ScanOrDie(tree_);
  EXPECT_EQ(inventory.devices[1].backend, Backend::kLegacy) << "vfio-dev/vfio3 without dev";
  EXPECT_EQ(inventory.devices[1].self.vfio_cdev, std::nullopt);
}

TEST_F(InventoryTest, TheClassSaysIommufdOnlyInATreeWithoutDev) {
  tree_.SetVfio(kGpu, 0);
  tree_.AddIommufd(/*with_dev=*/false);
  EXPECT_EQ(ScanOrDie(tree_).devices.at(0).backend, Backend::kIommufd);
  tree_.Write("dev/null", "");
  EXPECT_EQ(ScanOrDie(tree_).devices.at(0).backend, Backend::kLegacy);
}

TEST_F(InventoryTest, ReadsAPlainCopyWithFoldersInPlaceOfLinks) {
  SysfsTree tree;
  const std::string folder = "sys/bus/pci/devices/0000:5a:00.0/";
  tree.Write(folder + "vendor", "0x10de\n");
  tree.Write(folder + "device", "0x2335\n");
  tree.Write(folder + "class", "0x030200\n");
  tree.Write(folder + "numa_node", "0\n");
  tree.Link(folder + "driver", "../../../../bus/pci/drivers/vfio-pci");  // leads nowhere
  tree.Link(folder + "iommu_group", "../../../../kernel/iommu_groups/77");
  const Inventory inventory = ScanOrDie(tree);
  ASSERT_THAT(Addresses(inventory), ElementsAre("0000:5a:00.0"));
  EXPECT_TRUE(inventory.devices[0].ready()) << *inventory.devices[0].problem;
  EXPECT_THAT(inventory.devices[0].self.iommu_group, Optional(77));
}

TEST_F(InventoryTest, FailsWithoutABusToList) {
  EXPECT_TRUE(absl::IsNotFound(Scan(HostRoot(tree_.Path("sys/class"))).status()));
}

TEST_F(InventoryTest, ADeviceThatVanishesMidScanIsReportedAndSkipped) {
  tree_.AddGpu(kOther, 13);
  tree_.RemoveFolderOnly(kOther);
  const Inventory inventory = ScanOrDie(tree_);
  EXPECT_THAT(Addresses(inventory), ElementsAre(kGpu));
  ASSERT_EQ(inventory.problems.size(), 1u);
  EXPECT_EQ(inventory.problems[0].path, tree_.Path(absl::StrCat("sys/bus/pci/devices/", kOther)));
  EXPECT_THAT(inventory.problems[0].problem, HasSubstr("gone"));
}

TEST_F(InventoryTest, AnotherVendorsDeviceNeedsNoMoreThanAVendor) {
  tree_.AddFunction({.address = kOther, .vendor = 0x8086, .numa_node = std::nullopt});
  tree_.RemoveFile(kOther, "class");
  EXPECT_THAT(ScanOrDie(tree_).problems, IsEmpty());
}

TEST_F(InventoryTest, EntriesThatAreNoAddressAreReported) {
  tree_.Write("sys/bus/pci/devices/README", "hello");
  tree_.Write("sys/bus/pci/devices/0000:AF:00.0/vendor", "0x10de\n");
  const Inventory inventory = ScanOrDie(tree_);
  EXPECT_THAT(Addresses(inventory), ElementsAre(kGpu));
  ASSERT_EQ(inventory.problems.size(), 2u);
  EXPECT_THAT(inventory.problems[0].problem, HasSubstr("0000:af:00.0"));
  EXPECT_THAT(inventory.problems[1].problem, HasSubstr("README"));
}

TEST_F(InventoryTest, ADriverThatIsNoLinkIsNotGuessed) {
  tree_.AddFunction({.address = kOther, .driver = std::nullopt, .group = 13});
  tree_.SetFile(kOther, "driver/module", "");
  const Inventory inventory = ScanOrDie(tree_);
  EXPECT_THAT(Addresses(inventory), ElementsAre(kGpu));
  ASSERT_EQ(inventory.problems.size(), 1u);
  EXPECT_THAT(inventory.problems[0].problem, HasSubstr("driver is not a symbolic link"));
}

// A file that makes a GPU unreadable: absent content = the file is missing.
struct BadFile {
  std::string name;
  std::optional<std::string> content;
  std::string rule;  // what the report must say

  friend void PrintTo(const BadFile& bad, std::ostream* out) {
    *out << bad.name << " = " << bad.content.value_or("missing").substr(0, 40);
  }
};

class BadFileTest : public ::testing::TestWithParam<BadFile> {};

TEST_P(BadFileTest, LeavesOutThatDeviceAndSaysWhy) {
  SysfsTree tree;
  tree.AddGpu(kGpu, 12);
  tree.AddFunction({.address = kOther, .group = 13, .vfio = 1});
  tree.RemoveFile(kOther, GetParam().name);
  if (GetParam().content) tree.SetFile(kOther, GetParam().name, *GetParam().content);
  const Inventory inventory = ScanOrDie(tree);
  EXPECT_THAT(Addresses(inventory), ElementsAre(kGpu));
  EXPECT_TRUE(inventory.devices.at(0).ready());
  ASSERT_EQ(inventory.problems.size(), 1u);
  EXPECT_THAT(inventory.problems[0].path, HasSubstr(kOther));
  EXPECT_THAT(inventory.problems[0].problem, HasSubstr(GetParam().name));
  EXPECT_THAT(inventory.problems[0].problem, HasSubstr(GetParam().rule));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadFileTest,
    ::testing::Values(
        BadFile{"vendor", std::nullopt, "missing"}, BadFile{"vendor", "", "4 hexadecimal"},
        BadFile{"vendor", "10de\n", "4 hexadecimal"},
        BadFile{"vendor", "0x10deb\n", "4 hexadecimal"}, BadFile{"device", std::nullopt, "missing"},
        BadFile{"device", "0x23 0\n", "4 hexadecimal"},
        BadFile{"device", "0x0x33\n", "4 hexadecimal"}, BadFile{"class", std::nullopt, "missing"},
        BadFile{"class", "0x0302\n", "6 hexadecimal"},
        BadFile{"class", "0x0302zz\n", "6 hexadecimal"},
        BadFile{"class", std::string(5000, '0'), "longer"},
        BadFile{"numa_node", std::nullopt, "missing"}, BadFile{"numa_node", "\n", "node number"},
        BadFile{"numa_node", "-2\n", "node number"},
        BadFile{"numa_node", "99999999999\n", "node number"},
        BadFile{"resource", "0x1 0x2\n", "three hexadecimal"},
        BadFile{"resource", "0x0 0x0 0x0\n0x1 0x2 flags\n", "three hexadecimal"},
        BadFile{"resource", "0x2000 0x1000 0x200\n", "not before its start"},
        BadFile{"resource", "0x0 0x10000000000000000 0x200\n", "three hexadecimal"},
        BadFile{"vfio-dev", "a file", "Not a directory"}));

TEST_F(InventoryTest, TwoEntriesInVfioDevAreAContradiction) {
  tree_.AddFunction({.address = kOther, .group = 13, .vfio = 1});
  tree_.SetFile(kOther, "vfio-dev/vfio2/dev", "511:2\n");
  const Inventory inventory = ScanOrDie(tree_);
  EXPECT_THAT(Addresses(inventory), ElementsAre(kGpu));
  EXPECT_EQ(inventory.problems.size(), 1u);
}

TEST(BackendName, IsTheWordOfTheJsonOutput) {
  EXPECT_EQ(BackendName(Backend::kLegacy), "legacy");
  EXPECT_EQ(BackendName(Backend::kIommufd), "iommufd");
}

}  // namespace
}  // namespace switchyard::pci
