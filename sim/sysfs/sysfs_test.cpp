// SPDX-License-Identifier: Apache-2.0
// The tree, read back with the product's own inventory: the two were written from the kernel's
// documentation independently.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/stat.h>

#include <filesystem>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "pci/inventory.h"
#include "pci/uevents.h"
#include "sim/sysfs/sysfs_tree.h"

namespace switchyard::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

PciAddress At(const char* text) { return PciAddress::Parse(text).value(); }
const PciAddress kA = {.bus = 0x0f};
const PciAddress kB = {.bus = 0x41};
const PciAddress kC = {.bus = 0xb8};

class SysfsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/sysfs_test.XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    root_ = folder;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  // Three H100s on `driver`.
  void Make(const std::string& driver, bool iommufd = false, UeventSender* uevents = nullptr) {
    auto tree = SysfsTree::Create({.root = root_, .iommufd = iommufd, .uevents = uevents});
    ASSERT_TRUE(tree.ok()) << tree.status();
    tree_ = *std::move(tree);
    for (const auto& [address, node] : {std::pair(kA, 0), std::pair(kB, -1), std::pair(kC, 1)}) {
      FunctionSpec spec = GpuSpec(address, 0x2330, node);
      spec.driver = driver;
      ASSERT_EQ(tree_->Add(spec), OkStatus());
    }
  }

  pci::Inventory Scan() {
    Result<pci::Inventory> inventory = pci::Scan(HostRoot(root_));
    EXPECT_TRUE(inventory.ok()) << inventory.status();
    return inventory.ok() ? *std::move(inventory) : pci::Inventory();
  }
  pci::Device Read(const PciAddress& address) {
    const pci::Inventory inventory = Scan();
    const pci::Device* device = inventory.Find(address);
    EXPECT_NE(device, nullptr) << address.ToString();
    return device == nullptr ? pci::Device() : *device;
  }
  bool Exists(const std::string& path) { return std::filesystem::exists(root_ + "/" + path); }

  std::string root_;
  std::unique_ptr<SysfsTree> tree_;
};

TEST_F(SysfsTest, InventorySeesWhatWasAdded) {
  Make("vfio-pci");
  const pci::Inventory inventory = Scan();
  ASSERT_THAT(inventory.devices, SizeIs(3));
  EXPECT_THAT(inventory.problems, IsEmpty());
  const pci::Device& a = inventory.devices[0];
  EXPECT_EQ(a.self.address, kA);
  EXPECT_TRUE(a.self.IsGpu());
  EXPECT_EQ(a.self.device, 0x2330);
  EXPECT_EQ(a.self.driver, "vfio-pci");
  EXPECT_EQ(a.self.numa_node, 0);
  EXPECT_EQ(inventory.devices[1].self.numa_node, std::nullopt);
  EXPECT_EQ(a.backend, pci::Backend::kLegacy);
  EXPECT_TRUE(a.ready()) << *a.problem;
  ASSERT_THAT(a.self.bars, SizeIs(3));
  EXPECT_EQ(a.self.bars[1].bytes, 128ULL << 30);
  EXPECT_TRUE(a.self.bars[1].is_64bit);
  EXPECT_TRUE(Exists(absl::StrCat("dev/vfio/", a.self.iommu_group.value())));
  EXPECT_TRUE(Exists(absl::StrCat("sys/class/vfio/", a.self.iommu_group.value(), "/dev")));
}

TEST_F(SysfsTest, IommufdGivesEachDeviceItsOwnNode) {
  Make("vfio-pci", /*iommufd=*/true);
  const pci::Device a = Read(kA);
  EXPECT_EQ(a.backend, pci::Backend::kIommufd);
  ASSERT_TRUE(a.self.vfio_cdev.has_value());
  EXPECT_TRUE(Exists("dev/vfio/devices/" + *a.self.vfio_cdev));
  EXPECT_TRUE(Exists("dev/iommu"));
  ASSERT_EQ(tree_->Break(kA, Defect::kNoCdev), OkStatus());
  EXPECT_EQ(Read(kA).backend, pci::Backend::kLegacy);
  EXPECT_EQ(Read(kB).backend, pci::Backend::kIommufd);
}

TEST_F(SysfsTest, DriversChange) {
  Make("nvidia");
  EXPECT_FALSE(Read(kA).ready());
  EXPECT_FALSE(Exists(absl::StrCat("dev/vfio/", Read(kA).self.iommu_group.value())));
  ASSERT_EQ(tree_->SetDriver(kA, "nvgrace_gpu_vfio_pci"), OkStatus());
  EXPECT_TRUE(Read(kA).ready());
  EXPECT_TRUE(Exists(absl::StrCat("dev/vfio/", Read(kA).self.iommu_group.value())));
  ASSERT_EQ(tree_->SetDriver(kA, ""), OkStatus());
  EXPECT_EQ(Read(kA).self.driver, std::nullopt);
  EXPECT_FALSE(Exists(absl::StrCat("dev/vfio/", Read(kA).self.iommu_group.value())));
  EXPECT_EQ(tree_->SetDriver(kA, "../x").code(), absl::StatusCode::kInvalidArgument);
}

// tests/kernel, KernelVfio.TheLastCdevTakesItsFolderWithIt: the same of a real kernel.
TEST_F(SysfsTest, TheLastCdevTakesItsFolderWithIt) {
  Make("vfio-pci", true);
  for (const PciAddress& address : {kA, kB, kC}) {
    EXPECT_TRUE(Exists("dev/vfio/devices"));
    EXPECT_TRUE(Exists("sys/devices/virtual/vfio"));
    ASSERT_EQ(tree_->SetDriver(address, ""), OkStatus());
  }
  EXPECT_FALSE(Exists("dev/vfio/devices"));
  EXPECT_FALSE(Exists("sys/devices/virtual/vfio"));
  EXPECT_TRUE(Exists("sys/class/vfio-dev"));
  ASSERT_EQ(tree_->SetDriver(kA, "vfio-pci"), OkStatus());
  EXPECT_TRUE(Exists("dev/vfio/devices"));
}

TEST_F(SysfsTest, TheEventFileNamesTheDriver) {
  Make("vfio-pci");
  const auto text = [this] {
    return ReadFile(root_ + "/sys/bus/pci/devices/0000:0f:00.0/uevent", 4096).value_or("");
  };
  EXPECT_EQ(text(),
            "DRIVER=vfio-pci\nPCI_CLASS=30200\nPCI_ID=10DE:2330\nPCI_SLOT_NAME=0000:0f:00.0\n");
  ASSERT_EQ(tree_->SetDriver(kA, ""), OkStatus());
  EXPECT_THAT(text(), ::testing::Not(HasSubstr("DRIVER=")));
}

TEST_F(SysfsTest, ADeviceVanishesAndReturnsAsItWas) {
  Make("vfio-pci", true);
  const pci::Device before = Read(kB);
  ASSERT_EQ(tree_->Vanish(kB), OkStatus());
  EXPECT_EQ(Scan().Find(kB), nullptr);
  EXPECT_FALSE(Exists(absl::StrCat("sys/kernel/iommu_groups/", before.self.iommu_group.value())));
  EXPECT_EQ(tree_->Vanish(kB).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_EQ(tree_->Return(kB), OkStatus());
  EXPECT_TRUE(Read(kB).ready());
  EXPECT_EQ(Read(kB).self.iommu_group, before.self.iommu_group);
  EXPECT_EQ(tree_->Return(kB).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(tree_->Vanish(At("01:00.0")).code(), absl::StatusCode::kNotFound);
}

TEST_F(SysfsTest, RenumberMovesEveryNumberToAnotherDevice) {
  Make("vfio-pci", true);
  const pci::Inventory before = Scan();
  ASSERT_EQ(tree_->Renumber(), OkStatus());
  const pci::Inventory after = Scan();
  ASSERT_THAT(after.devices, SizeIs(3));
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(after.devices[i].self.address, before.devices[i].self.address);
    EXPECT_NE(after.devices[i].self.iommu_group, before.devices[i].self.iommu_group);
    EXPECT_NE(after.devices[i].self.vfio_cdev, before.devices[i].self.vfio_cdev);
    EXPECT_TRUE(after.devices[i].ready());
  }
}

TEST_F(SysfsTest, CompanionsAreMembersAndABridgeIsNot) {
  Make("vfio-pci");
  for (Companion kind :
       {Companion::kAudio, Companion::kUsb, Companion::kUcsi, Companion::kBridge}) {
    ASSERT_EQ(tree_->Add(CompanionSpec(kA, 0, kind), kA), OkStatus());
  }
  const pci::Device a = Read(kA);
  EXPECT_THAT(a.members, SizeIs(4));
  ASSERT_FALSE(a.ready());
  for (const char* name : {"0f:00.1", "0f:00.2", "0f:00.3"}) {
    ASSERT_EQ(tree_->SetDriver(At(name), "vfio-pci"), OkStatus());
  }
  EXPECT_TRUE(Read(kA).ready()) << *Read(kA).problem;
}

TEST_F(SysfsTest, TwoGpusShareAGroup) {
  Make("vfio-pci");
  ASSERT_EQ(tree_->ShareGroup(kB, kA), OkStatus());
  const pci::Device a = Read(kA);
  EXPECT_EQ(a.self.iommu_group, Read(kB).self.iommu_group);
  EXPECT_THAT(a.members, SizeIs(2));
  EXPECT_EQ(Read(kB).Lead(), kA);
  EXPECT_THAT(Read(kC).members, SizeIs(1));
}

TEST_F(SysfsTest, ABrokenDeviceIsAProblemOfItsOwn) {
  Make("vfio-pci");
  ASSERT_EQ(tree_->Break(kA, Defect::kNoNumaNode), OkStatus());
  ASSERT_EQ(tree_->Break(kB, Defect::kShortResource), OkStatus());
  const pci::Inventory inventory = Scan();
  EXPECT_THAT(inventory.devices, SizeIs(1));
  EXPECT_THAT(inventory.problems, SizeIs(2));
  ASSERT_EQ(tree_->Repair(kA), OkStatus());
  ASSERT_EQ(tree_->Repair(kB), OkStatus());
  EXPECT_THAT(Scan().devices, SizeIs(3));
}

TEST_F(SysfsTest, NvSwitchesAreNoGpus) {
  Make("vfio-pci");
  ASSERT_EQ(tree_->Add(NvSwitchSpec(At("05:00.0"), 0x22a3)), OkStatus());
  EXPECT_TRUE(Read(At("05:00.0")).self.IsNvSwitch());
  ASSERT_EQ(tree_->Add(SwitchManagerSpec(At("06:00.0"))), OkStatus());
  EXPECT_THAT(Scan().devices, SizeIs(4));
  Result<std::string> vpd =
      ReadFile(root_ + "/sys/bus/pci/devices/0000:06:00.0/vpd", /*max_bytes=*/4096);
  ASSERT_TRUE(vpd.ok());
  EXPECT_THAT(*vpd, HasSubstr("SW_MNG"));
}

TEST_F(SysfsTest, NodesOpenAndDifferFromEachOther) {
  Make("vfio-pci", true);
  if (!tree_->real_nodes()) GTEST_SKIP() << "device nodes need root: run this test as root";
  std::set<dev_t> numbers;
  size_t nodes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root_ + "/dev")) {
    if (entry.is_directory()) continue;
    struct stat status = {};
    ASSERT_EQ(stat(entry.path().c_str(), &status), 0);
    numbers.insert(status.st_rdev);
    ++nodes;
    const UniqueFd fd(open(entry.path().c_str(), O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
    EXPECT_TRUE(fd.valid()) << entry.path() << ": " << strerror(errno);
  }
  EXPECT_EQ(nodes, 8u);  // vfio, 3 groups, iommu, 3 devices
  EXPECT_EQ(numbers.size(), nodes);
}

TEST_F(SysfsTest, AllThatWasMadeForADeviceIsRemovedWithIt) {
  Make("vfio-pci", true);
  const auto count = [this] {
    size_t n = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root_)) {
      n += entry.exists() || entry.is_symlink() ? 1 : 0;
    }
    return n;
  };
  const size_t with = count();
  ASSERT_EQ(tree_->Vanish(kC), OkStatus());
  EXPECT_LT(count(), with);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root_)) {
    EXPECT_TRUE(std::filesystem::exists(entry.path())) << "dangles: " << entry.path();
    EXPECT_THAT(entry.path().filename().string(), ::testing::Not(HasSubstr("b8:00.0")));
  }
}

// In a network namespace of its own, so that nobody else hears of devices that are not there.
TEST_F(SysfsTest, UeventsComeBackAsTheKernels) {
  std::thread([this] {
    if (unshare(CLONE_NEWNET) != 0) GTEST_SKIP() << "needs root: run this test as root";
    Result<UeventSender> sender = UeventSender::Open();
    ASSERT_TRUE(sender.ok()) << sender.status();
    Result<pci::UeventSocket> listener = pci::UeventSocket::Open();
    ASSERT_TRUE(listener.ok()) << listener.status();
    Make("vfio-pci", true, &*sender);
    EXPECT_TRUE(listener->DrainAndCheck());
    EXPECT_FALSE(listener->DrainAndCheck());
    ASSERT_EQ(tree_->SetDriver(kA, ""), OkStatus());
    EXPECT_TRUE(listener->DrainAndCheck());
    ASSERT_EQ(tree_->Vanish(kA), OkStatus());
    EXPECT_TRUE(listener->DrainAndCheck());
  }).join();
}

}  // namespace
}  // namespace switchyard::sim
