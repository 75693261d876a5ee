// SPDX-License-Identifier: Apache-2.0
// `switchyard inventory` against the kernel's own sysfs, read here by other code than the
// product's.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "pci/inventory.h"
#include "tests/kernel/guest.h"

namespace switchyard::kernel_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Json = nlohmann::json;

class KernelInventory : public Fixture {
 protected:
  Json Inventory() {
    auto process = sim::Process::Start({"/lab/switchyard", "inventory", "-o", "json"});
    EXPECT_TRUE(process.ok()) << process.status();
    EXPECT_EQ((*process)->Wait(kPatience), 0);
    (*process)->WaitForLine("\n", kPatience);  // in no line: until the output's end
    Json json = Json::parse((*process)->Output(), nullptr, false);
    EXPECT_FALSE(json.is_discarded()) << (*process)->Output();
    return json;
  }

  Json Device(const std::string& address) {
    const Json inventory = Inventory();
    for (const Json& device : inventory["devices"]) {
      if (device["address"] == address) return device;
    }
    ADD_FAILURE() << address << " is not in " << inventory.dump(1);
    return {};
  }

  // Empty: ready. Checked to go with "ready".
  std::string Problem(const std::string& address) {
    const Json device = Device(address);
    EXPECT_EQ(device["ready"].get<bool>(), device["problem"].is_null());
    return device["problem"].is_null() ? "" : device["problem"].get<std::string>();
  }
  std::vector<std::string> Members(const std::string& address) {
    return Device(address)["members"].get<std::vector<std::string>>();
  }

  // What VFIO itself says of the group; -1: its node can't be opened.
  int Viable(const std::string& address) {
    const std::vector<std::string> lines = TryToOpen({"group=" + GroupNode(address), "viable"});
    for (const std::string& line : lines) {
      if (line == "viable 1") return 1;
      if (line == "viable 0") return 0;
    }
    return -1;
  }
};

bool IsBridge(const std::string& address) {
  return Read(SysfsFolder(address) + "/class").substr(0, 6) == "0x0604";
}

TEST_F(KernelInventory, HasEachGpuAndNvSwitchAsTheKernelHasIt) {
  const Json inventory = Inventory();
  EXPECT_THAT(inventory["problems"], IsEmpty());
  std::vector<std::string> expected;
  for (const char* ids : {kH200, kNvSwitch, kRtx}) {
    for (const std::string& address : Functions(ids)) expected.push_back(address);
  }
  std::sort(expected.begin(), expected.end());
  std::vector<std::string> listed;
  for (const Json& device : inventory["devices"]) {
    const std::string address = device["address"];
    const std::string folder = SysfsFolder(address);
    listed.push_back(address);
    for (const char* name : {"class", "vendor", "device"}) {
      EXPECT_EQ(device[name].get<std::string>(), Read(folder + "/" + name)) << address;
    }
    EXPECT_EQ(device["iommuGroup"].get<int>(), Group(address));
    const std::string node = Read(folder + "/numa_node");
    EXPECT_EQ(device["numaNode"].is_null() ? "-1" : device["numaNode"].dump(), node) << address;
    const std::string driver = Driver(address);
    EXPECT_EQ(device["driver"].is_null() ? "" : device["driver"].get<std::string>(), driver);
    std::set<std::string> members;
    for (const std::string& member :
         Names(absl::StrCat("/sys/kernel/iommu_groups/", Group(address), "/devices"))) {
      if (!IsBridge(member)) members.insert(member);
    }
    EXPECT_EQ(device["members"].get<std::set<std::string>>(), members);
  }
  EXPECT_EQ(listed, expected);
}

TEST_F(KernelInventory, NumaNodesAreTheFirmwares) {
  std::vector<int> nodes;
  for (const std::string& gpu : gpus_) nodes.push_back(Device(gpu)["numaNode"].get<int>());
  EXPECT_THAT(nodes, ElementsAre(0, 0, 1, 1));
}

TEST_F(KernelInventory, BarsAreThoseOfTheCard) {
  const Result<pci::Inventory> inventory = pci::Scan(HostRoot("/"));
  ASSERT_TRUE(inventory.ok()) << inventory.status();
  const pci::Device* device = inventory->Find(PciAddress::Parse(gpus_[0]).value());
  ASSERT_NE(device, nullptr);
  ASSERT_THAT(device->self.bars, SizeIs(3));
  EXPECT_EQ(device->self.bars[0].bytes, 16ULL << 20);
  EXPECT_FALSE(device->self.bars[0].is_64bit);
  EXPECT_EQ(device->self.bars[1].bytes, 64ULL << 30);
  EXPECT_TRUE(device->self.bars[1].is_64bit);
}

TEST_F(KernelInventory, NoDriverIsNotReadyAndVfioPciIs) {
  EXPECT_EQ(Problem(gpus_[0]), "");
  Bind(gpus_[0], "");
  EXPECT_THAT(Problem(gpus_[0]), HasSubstr("no driver"));
  Bind(gpus_[0], "pci-stub");
  EXPECT_THAT(Problem(gpus_[0]), HasSubstr("pci-stub, which is no vfio driver"));
}

TEST_F(KernelInventory, TheBackendIsIommufdWhereTheHostHasIt) {
  EXPECT_EQ(Device(gpus_[0])["backend"].get<std::string>(), "iommufd");
  // A host without iommufd: the same kernel, its node taken away.
  ASSERT_EQ(::rename("/dev/iommu", "/dev/iommu.away"), 0);
  EXPECT_EQ(Device(gpus_[0])["backend"].get<std::string>(), "legacy");
  ASSERT_EQ(::rename("/dev/iommu.away", "/dev/iommu"), 0);
}

TEST_F(KernelInventory, ACardAndItsAudioFunctionAreOneGroup) {
  const auto [card, audio] = InOneGroup(kRtx, kAudio);
  EXPECT_THAT(Members(card), ElementsAre(card, audio));
  Bind(card, "vfio-pci");
  EXPECT_EQ(Problem(card), "") << "a companion without a driver";
  EXPECT_EQ(Viable(card), 1);
  Bind(audio, "pci-stub");
  EXPECT_EQ(Problem(card), "") << "a companion on pci-stub";
  EXPECT_EQ(Viable(card), 1);
  Bind(audio, "vfio-pci");
  EXPECT_EQ(Problem(card), "");
  EXPECT_EQ(Viable(card), 1);
}

TEST_F(KernelInventory, AGroupWithADiskOnItsHostDriverIsNotReadyAndNotViable) {
  const auto [gpu, disk] = InOneGroup(kRtx, kDisk);
  Bind(gpu, "vfio-pci");
  EXPECT_THAT(Problem(gpu),
              HasSubstr(absl::StrCat(disk, " of IOMMU group ", Group(gpu), " is on nvme")));
  EXPECT_EQ(Viable(gpu), 0);
  EXPECT_THAT(TryToOpen({"iommufd", "cdev=" + CdevNode(gpu), "bind"}),
              ElementsAre("iommufd ok", "cdev ok", "bind EPERM"));
  Bind(disk, "");
  EXPECT_EQ(Problem(gpu), "");
  EXPECT_EQ(Viable(gpu), 1);
}

TEST_F(KernelInventory, TwoGpusOfOneGroupAreMembersOfEachOther) {
  const auto [first, second] = InOneGroup(kRtx, kRtx);
  EXPECT_THAT(Members(first), ElementsAre(first, second));
  EXPECT_THAT(Members(second), ElementsAre(first, second));
  Bind(first, "vfio-pci");
  EXPECT_EQ(Problem(first), "");
  EXPECT_NE(Problem(second), "");
}

}  // namespace
}  // namespace switchyard::kernel_test
