// SPDX-License-Identifier: Apache-2.0
#include "kube/contract.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "kube/resource_names.h"
#include "kube/testing/devices.h"

namespace switchyard::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::MakeDevice;
using ::testing::Pair;
using testing::Pci;
using testing::TestPciIds;

constexpr auto kLegacy = pci::Backend::kLegacy;
constexpr auto kIommufd = pci::Backend::kIommufd;

std::unique_ptr<Contract> Kubevirt(NamingOptions naming = {},
                                   tenancy::FabricMode mode = tenancy::FabricMode::kOff) {
  return MakeKubevirtContract(std::move(naming), TestPciIds(), mode).value();
}
std::unique_ptr<Contract> Kata(tenancy::FabricMode mode = tenancy::FabricMode::kOff,
                               NamingOptions naming = {}) {
  return MakeKataContract(std::move(naming), TestPciIds(), mode).value();
}

tenancy::GrantedDevice Granted(absl::string_view address, int group,
                               std::vector<tenancy::GrantedFunction> functions) {
  const bool cdev = !functions.empty() && functions.front().cdev.has_value();
  return {Pci(address), cdev ? kIommufd : kLegacy, group, std::move(functions)};
}

TEST(SpellModel, FollowsThePredecessorsRule) {
  EXPECT_EQ(SpellModel("GH100 [H100 SXM5 80GB]", Hyphens::kRemove), "GH100_H100_SXM5_80GB");
  EXPECT_EQ(SpellModel("A/b.c \t d-e(f)ü", Hyphens::kRemove), "A_B_C_DEF");
  EXPECT_EQ(SpellModel("A/b.c \t d-e(f)", Hyphens::kKeep), "A_B_C_D-EF");
  EXPECT_EQ(SpellModel("GH100 [GH200 120GB / 480GB]", Hyphens::kRemove),
            "GH100_GH200_120GB___480GB");
}

TEST(KubevirtContract, NamesResourcesByModel) {
  EXPECT_EQ(Kubevirt()->ResourceName(DeviceKind::kGpu, 0x2330), "nvidia.com/GH100_H100_SXM5_80GB");
  // Two device ids share one name.
  EXPECT_EQ(Kubevirt()->ResourceName(DeviceKind::kGpu, 0x20b1), "nvidia.com/GA100_A100_PCIE_40GB");
  EXPECT_EQ(Kubevirt()->ResourceName(DeviceKind::kGpu, 0x20f1), "nvidia.com/GA100_A100_PCIE_40GB");
  // Its hyphen goes.
  EXPECT_EQ(Kubevirt()->ResourceName(DeviceKind::kGpu, 0x0fff), "nvidia.com/GK107_QUADRO_K1000");
}

TEST(KubevirtContract, AsksBeforeEachStartInEnforceOnly) {
  using tenancy::FabricMode;
  EXPECT_FALSE(Kubevirt({}, FabricMode::kOff)->PreStartRequired(DeviceKind::kGpu));
  EXPECT_FALSE(Kubevirt({}, FabricMode::kAdvise)->PreStartRequired(DeviceKind::kGpu));
  EXPECT_TRUE(Kubevirt({}, FabricMode::kEnforce)->PreStartRequired(DeviceKind::kGpu));
  EXPECT_FALSE(Kubevirt({}, FabricMode::kEnforce)->PreStartRequired(DeviceKind::kNvSwitch));
}

TEST(KubevirtContract, FallsBackToTheHexId) {
  EXPECT_EQ(Kubevirt()->ResourceName(DeviceKind::kGpu, 0x2abc), "nvidia.com/2abc");
  EXPECT_EQ(Kubevirt()->ResourceName(DeviceKind::kGpu, 0x0001), "nvidia.com/0001")
      << "a name that ends in '_' would be refused by kubelet";
}

TEST(KubevirtContract, ConfiguredNamesGoFirst) {
  NamingOptions naming;
  naming.names = {{0x2330, "my-gpu.v1"}};
  naming.gpu_alias = "gpu";
  EXPECT_EQ(Kubevirt(naming)->ResourceName(DeviceKind::kGpu, 0x2330), "nvidia.com/my-gpu.v1");
  EXPECT_EQ(Kubevirt(naming)->ResourceName(DeviceKind::kGpu, 0x20b1), "nvidia.com/gpu");
}

TEST(KubevirtContract, RefusesNamesKubernetesWouldRefuse) {
  for (const char* name : {"", "-x", "x-", "a b", "a/b",
                           "0123456789012345678901234567890123456789012345678901234567890123"}) {
    NamingOptions naming;
    naming.names = {{0x2330, name}};
    const auto contract = MakeKubevirtContract(naming, TestPciIds(), tenancy::FabricMode::kOff);
    EXPECT_TRUE(absl::IsInvalidArgument(contract.status())) << name;
    EXPECT_THAT(std::string(contract.status().message()), HasSubstr("resources.names[\"0x2330\"]"));
  }
}

TEST(KubevirtContract, OffersGpusUnderTheirAddress) {
  EXPECT_TRUE(Kubevirt()->Offers(DeviceKind::kGpu));
  EXPECT_FALSE(Kubevirt()->Offers(DeviceKind::kNvSwitch));
  EXPECT_TRUE(Kubevirt()->PreferredAvailable(DeviceKind::kGpu)) << "also without a fabric";
  EXPECT_EQ(Kubevirt()->DeviceId({Pci("19:00.0"), 4, "vfio7"}, kIommufd), "0000:19:00.0");
  EXPECT_FALSE(Kubevirt()->WritesCdi());
}

TEST(KubevirtContract, AnswersAddressesInRequestOrderAndLegacyNodes) {
  tenancy::Grant grant;
  grant.devices = {Granted("0000:4d:00.0", 31, {{Pci("4d:00.0"), {}}}),
                   Granted("0000:19:00.0", 12, {{Pci("19:00.0"), {}}})};
  const auto answer = Kubevirt()->Answer("nvidia.com/GH100_H100_SXM5_80GB", grant, kLegacy);
  EXPECT_THAT(answer.environment, ElementsAre(Pair("PCI_RESOURCE_NVIDIA_COM_GH100_H100_SXM5_80GB",
                                                   "0000:4d:00.0,0000:19:00.0")));
  EXPECT_THAT(answer.nodes, ElementsAre("/dev/vfio/vfio", "/dev/vfio/31", "/dev/vfio/12"));
}

TEST(KubevirtContract, EnvironmentNameKeepsHyphens) {
  const auto answer = Kubevirt()->Answer("nvidia.com/my-gpu.v1", {}, kLegacy);
  EXPECT_EQ(answer.environment.at(0).first, "PCI_RESOURCE_NVIDIA_COM_MY-GPU_V1");
}

TEST(KubevirtContract, IommufdAddsNodesOfEveryFunctionOnce) {
  tenancy::Grant grant;
  grant.devices = {
      Granted("0000:19:00.0", 12, {{Pci("19:00.0"), "vfio3"}, {Pci("19:00.1"), "vfio4"}}),
      Granted("0000:4d:00.0", 31, {{Pci("4d:00.0"), "vfio0"}})};
  const auto answer = Kubevirt()->Answer("nvidia.com/X", grant, kLegacy);
  EXPECT_THAT(answer.nodes, ElementsAre("/dev/vfio/vfio", "/dev/vfio/12", "/dev/vfio/31",
                                        "/dev/iommu", "/dev/vfio/devices/vfio3",
                                        "/dev/vfio/devices/vfio4", "/dev/vfio/devices/vfio0"));
}

TEST(KubevirtContract, AGroupOfTwoGpusGivesOneAddressAndAllNodes) {
  tenancy::Grant grant;
  grant.devices = {
      Granted("0000:19:00.0", 12, {{Pci("19:00.0"), "vfio3"}, {Pci("1a:00.0"), "vfio4"}})};
  const auto answer = Kubevirt()->Answer("nvidia.com/X", grant, kLegacy);
  EXPECT_EQ(answer.environment.at(0).second, "0000:19:00.0");
  EXPECT_THAT(answer.nodes, ElementsAre("/dev/vfio/vfio", "/dev/vfio/12", "/dev/iommu",
                                        "/dev/vfio/devices/vfio3", "/dev/vfio/devices/vfio4"));
}

TEST(KataContract, HasOneNameForEachKindUnlessToldOtherwise) {
  EXPECT_EQ(Kata()->ResourceName(DeviceKind::kGpu, 0x2330), "nvidia.com/pgpu");
  EXPECT_EQ(Kata()->ResourceName(DeviceKind::kNvSwitch, 0x22a3), "nvidia.com/nvswitch");
  NamingOptions by_model;
  by_model.gpu_alias = "";
  EXPECT_EQ(Kata({}, by_model)->ResourceName(DeviceKind::kGpu, 0x2330),
            "nvidia.com/GH100_H100_SXM5_80GB");
  EXPECT_EQ(Kata({}, by_model)->ResourceName(DeviceKind::kGpu, 0x0fff),
            "nvidia.com/GK107_QUADRO_K-1000")
      << "hyphens kept";
  EXPECT_EQ(Kata({}, by_model)->ResourceName(DeviceKind::kNvSwitch, 0x22a3), "nvidia.com/nvswitch");
}

TEST(KataContract, RefusesOneNameForBothKinds) {
  NamingOptions naming;
  naming.gpu_alias = "nvswitch";
  const auto contract = MakeKataContract(naming, TestPciIds(), tenancy::FabricMode::kOff);
  EXPECT_TRUE(absl::IsInvalidArgument(contract.status()));
}

TEST(KataContract, PreferenceIsForGpusOnAFabric) {
  EXPECT_FALSE(Kata(tenancy::FabricMode::kOff)->PreferredAvailable(DeviceKind::kGpu));
  EXPECT_TRUE(Kata(tenancy::FabricMode::kAdvise)->PreferredAvailable(DeviceKind::kGpu));
  EXPECT_FALSE(Kata(tenancy::FabricMode::kAdvise)->PreferredAvailable(DeviceKind::kNvSwitch));
}

TEST(KataContract, NeverAsksBeforeAStart) {
  EXPECT_FALSE(Kata(tenancy::FabricMode::kEnforce)->PreStartRequired(DeviceKind::kGpu));
}

TEST(KataContract, IdsAreNumbers) {
  const DeviceNumbers numbers{Pci("19:00.0"), 12, "vfio3"};
  EXPECT_TRUE(Kata()->Offers(DeviceKind::kNvSwitch));
  EXPECT_EQ(Kata()->DeviceId(numbers, kIommufd), "3");
  EXPECT_EQ(Kata()->DeviceId(numbers, kLegacy), "12");
  EXPECT_EQ(Kata()->DeviceId({Pci("19:00.0"), 12, {}}, kIommufd), std::nullopt);
  EXPECT_EQ(Kata()->DeviceId({Pci("19:00.0"), {}, "vfio3"}, kLegacy), std::nullopt);
}

TEST(KataContract, AnswersOneBackendOnly) {
  tenancy::Grant grant;
  grant.devices = {
      Granted("0000:19:00.0", 12, {{Pci("19:00.0"), "vfio3"}, {Pci("19:00.1"), "vfio4"}}),
      Granted("0000:4d:00.0", 31, {{Pci("4d:00.0"), "vfio0"}})};
  const auto iommufd = Kata()->Answer("nvidia.com/pgpu", grant, kIommufd);
  EXPECT_THAT(iommufd.nodes, ElementsAre("/dev/vfio/devices/vfio3", "/dev/vfio/devices/vfio4",
                                         "/dev/vfio/devices/vfio0"));
  EXPECT_THAT(iommufd.environment, IsEmpty());
  // The same grant on a node where another device has no cdev.
  const auto legacy = Kata()->Answer("nvidia.com/pgpu", grant, kLegacy);
  EXPECT_THAT(legacy.nodes, ElementsAre("/dev/vfio/vfio", "/dev/vfio/12", "/dev/vfio/31"));
}

TEST(KataContract, CdiHasTheDevicesOwnNodes) {
  const pci::Device device = MakeDevice({.address = "0000:19:00.0", .group = 12, .cdev = "vfio3"});
  EXPECT_TRUE(Kata()->WritesCdi());
  EXPECT_THAT(Kata()->CdiNodes(device, kIommufd), ElementsAre("/dev/vfio/devices/vfio3"));
  EXPECT_THAT(Kata()->CdiNodes(device, kLegacy), ElementsAre("/dev/vfio/12"));
  const pci::Device rebound =
      MakeDevice({.address = "0000:19:00.0", .group = 12, .driver = "nvidia"});
  EXPECT_THAT(Kata()->CdiNodes(rebound, kLegacy), IsEmpty()) << "it has no node now";
}

}  // namespace
}  // namespace switchyard::kube
