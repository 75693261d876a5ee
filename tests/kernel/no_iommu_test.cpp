// SPDX-License-Identifier: Apache-2.0
// Machines that can't hand over a device: without an IOMMU, with VFIO's mode for such machines, and
// with an IOMMU that remaps no interrupts. The product must say so, and offer nothing.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "tests/kernel/guest.h"

namespace switchyard::kernel_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Json = nlohmann::json;

constexpr char kUnsafe[] = "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode";

// As the fixture of the machines with an IOMMU, but for the binding, which is what is tested.
class KernelNoIommu : public ::testing::Test {
 protected:
  void SetUp() override {
    gpus_ = Functions(kH200);
    ASSERT_EQ(gpus_.size(), 4u);
    ASSERT_EQ(Write(kUnsafe, "0"), 0);
    Bind(gpus_[0], "");
  }

  // Errors and the driver it is on then: the write succeeds whatever the driver says.
  std::string TryToBind(const std::string& gpu) {
    EXPECT_EQ(Write(SysfsFolder(gpu) + "/driver_override", "vfio-pci"), 0);
    EXPECT_EQ(Write("/sys/bus/pci/drivers_probe", gpu), 0);
    return Driver(gpu);
  }

  static std::string Problem(const std::string& address) {
    const Json device = Device(address);
    EXPECT_FALSE(device["ready"].get<bool>());
    return device["problem"].is_null() ? "" : device["problem"].get<std::string>();
  }
  static Json Device(const std::string& address) {
    auto process = sim::Process::Start({"/lab/switchyard", "inventory", "-o", "json"});
    EXPECT_TRUE(process.ok()) << process.status();
    EXPECT_EQ((*process)->Wait(kPatience), 0);
    (*process)->WaitForLine("\n", kPatience);  // in no line: until the output's end
    const Json inventory = Json::parse((*process)->Output(), nullptr, false);
    EXPECT_FALSE(inventory.is_discarded()) << (*process)->Output();
    for (const Json& device : inventory["devices"]) {
      if (device["address"] == address) return device;
    }
    ADD_FAILURE() << address << " is not in " << inventory.dump(1);
    return {};
  }

  std::vector<std::string> gpus_;
};

TEST_F(KernelNoIommu, VfioPciRefusesAndTheWriteSucceedsAllTheSame) {
  EXPECT_EQ(TryToBind(gpus_[0]), "");
  EXPECT_FALSE(Exists(SysfsFolder(gpus_[0]) + "/iommu_group"));
  EXPECT_THAT(Names("/sys/kernel/iommu_groups"), IsEmpty());
}

TEST_F(KernelNoIommu, TheProductNamesTheMissingIommu) {
  EXPECT_TRUE(Device(gpus_[0])["iommuGroup"].is_null());
  EXPECT_THAT(Problem(gpus_[0]), HasSubstr("no IOMMU group"));
}

// There the device is in a group that the kernel made up, has a folder vfio-dev but no cdev, and
// may do DMA everywhere: not for a VM.
TEST_F(KernelNoIommu, TheUnsafeModeIsNoReadyDevice) {
  ASSERT_EQ(Write(kUnsafe, "1"), 0);
  ASSERT_EQ(TryToBind(gpus_[0]), "vfio-pci");
  EXPECT_THAT(Names("/dev/vfio"), Contains(absl::StrCat("noiommu-", Group(gpus_[0]))));
  EXPECT_FALSE(Exists("/dev/vfio/devices"));
  EXPECT_TRUE(Exists(SysfsFolder(gpus_[0]) + "/vfio-dev"));
  EXPECT_THAT(Problem(gpus_[0]), HasSubstr("unsafe no-IOMMU mode"));
}

class KernelVirtioIommu : public Fixture {};

TEST_F(KernelVirtioIommu, AGroupWithoutInterruptRemappingCantBeAttached) {
  EXPECT_GE(Group(gpus_[0]), 0);
  EXPECT_THAT(TryToOpen(Legacy(gpus_[0])), ElementsAre("container ok", "group ok", "attach EPERM"));
}

}  // namespace
}  // namespace switchyard::kernel_test
