// SPDX-License-Identifier: Apache-2.0
#include "kube/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/match.h"
#include "kube/cdi_specs.h"
#include "kube/testing/devices.h"
#include "tenancy/testing/fakes.h"

namespace switchyard::kube {
namespace {

using tenancy::testing::FakeEvents;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::MakeInventory;
using ::testing::Not;
using testing::Pci;
using ::testing::SizeIs;
using testing::TestPciIds;

constexpr char kH100[] = "nvidia.com/GH100_H100_SXM5_80GB";

class CatalogueTest : public ::testing::Test {
 protected:
  CatalogueTest() {
    std::string folder = "/tmp/catalogue-XXXXXX";
    folder_ = ::mkdtemp(folder.data());
  }
  ~CatalogueTest() override { std::filesystem::remove_all(folder_); }

  // As after a restart of the agent, with the same state.
  void Restart() {
    catalogue_.reset();
    store_.reset();
    store_ = store::Store::Open(folder_, store::Store::Mode::kReadWrite).value().store;
    catalogue_ = std::make_unique<Catalogue>(*contract_, store_.get(), events_);
  }
  const Offer& Update(const std::vector<testing::FakeDevice>& devices,
                      const tenancy::BlockedDevices& blocked = {}) {
    if (catalogue_ == nullptr) Restart();
    offer_ = catalogue_->Update(MakeInventory(devices), blocked);
    return *offer_;
  }
  static std::vector<std::string> Ids(const Resource& resource) {
    std::vector<std::string> ids;
    for (const auto& device : resource.devices) ids.push_back(device.id);
    return ids;
  }
  void UseKata() {
    contract_ = MakeKataContract({}, TestPciIds(), tenancy::FabricMode::kAdvise).value();
  }

  FakeEvents events_;
  std::string folder_;
  std::unique_ptr<Contract> contract_ =
      MakeKubevirtContract({}, TestPciIds(), tenancy::FabricMode::kAdvise).value();
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<Catalogue> catalogue_;
  std::shared_ptr<const Offer> offer_;
};

TEST_F(CatalogueTest, OffersGpusOnAVfioDriverOnly) {
  const Offer& offer =
      Update({{.address = "0000:19:00.0", .group = 1},
              {.address = "0000:1a:00.0", .group = 2, .driver = "nvidia"},
              {.address = "0000:1b:00.0", .group = 3, .driver = ""},
              {.address = "0000:07:00.0", .group = 4, .device = 0x22a3, .nvswitch = true}});
  ASSERT_THAT(offer.resources, SizeIs(1));
  EXPECT_EQ(offer.resources[0].name, kH100);
  EXPECT_TRUE(offer.resources[0].preferred_available);
  EXPECT_THAT(Ids(offer.resources[0]), ElementsAre("0000:19:00.0"));
  EXPECT_TRUE(offer.resources[0].devices[0].healthy);
}

TEST_F(CatalogueTest, ReboundOrGoneIsUnhealthyUntilItIsBack) {
  Update({{.address = "0000:19:00.0", .group = 1}, {.address = "0000:1a:00.0", .group = 2}});
  events_.Take();
  const Offer& bad = Update({{.address = "0000:19:00.0", .group = 1, .driver = "nvidia"}});
  ASSERT_THAT(bad.resources, SizeIs(1));
  ASSERT_THAT(Ids(bad.resources[0]), ElementsAre("0000:19:00.0", "0000:1a:00.0"))
      << "capacity stays physical";
  EXPECT_FALSE(bad.resources[0].devices[0].healthy);
  EXPECT_THAT(bad.resources[0].devices[0].why_unhealthy, HasSubstr("on nvidia"));
  EXPECT_FALSE(bad.resources[0].devices[1].healthy);
  EXPECT_THAT(bad.resources[0].devices[1].why_unhealthy, HasSubstr("gone from the PCI bus"));
  EXPECT_THAT(events_.TakeNames(), ElementsAre("device_unhealthy", "device_unhealthy"));

  const Offer& good =
      Update({{.address = "0000:19:00.0", .group = 1}, {.address = "0000:1a:00.0", .group = 7}});
  EXPECT_TRUE(good.resources[0].devices[0].healthy);
  EXPECT_TRUE(good.resources[0].devices[1].healthy);
  EXPECT_THAT(events_.TakeNames(), ElementsAre("device_healthy", "device_healthy"));
  Update({{.address = "0000:19:00.0", .group = 1}, {.address = "0000:1a:00.0", .group = 7}});
  EXPECT_THAT(events_.TakeNames(), IsEmpty()) << "nothing changed";
}

TEST_F(CatalogueTest, RemembersOverARestart) {
  Update({{.address = "0000:19:00.0", .group = 1, .numa_node = 1}});
  Restart();
  const Offer& offer = Update({});
  ASSERT_THAT(offer.resources, SizeIs(1));
  ASSERT_THAT(Ids(offer.resources[0]), ElementsAre("0000:19:00.0"));
  EXPECT_FALSE(offer.resources[0].devices[0].healthy);
  EXPECT_EQ(offer.resources[0].devices[0].numa_node, 1);
}

TEST_F(CatalogueTest, ADeviceNotReadableSaysWhy) {
  Update({{.address = "0000:19:00.0", .group = 1}});
  pci::Inventory inventory;
  inventory.problems = {{"/sys/bus/pci/devices/0000:19:00.0", "no file numa_node"}};
  EXPECT_EQ(catalogue_->Update(inventory)->resources.at(0).devices.at(0).why_unhealthy,
            "no file numa_node");
}

TEST_F(CatalogueTest, AnotherCardInTheSlotReplacesIt) {
  Update({{.address = "0000:19:00.0", .group = 1}});
  const Offer& offer = Update({{.address = "0000:19:00.0", .group = 1, .device = 0x20b1}});
  ASSERT_THAT(offer.resources, SizeIs(1));
  EXPECT_EQ(offer.resources[0].name, "nvidia.com/GA100_A100_PCIE_40GB");
}

TEST_F(CatalogueTest, UnknownNodeIsNoTopology) {
  const Offer& offer = Update({{.address = "0000:19:00.0", .group = 1}});
  EXPECT_EQ(offer.resources.at(0).devices.at(0).numa_node, std::nullopt);
}

TEST_F(CatalogueTest, TwoGpusOfAGroupAreOneDevice) {
  const Offer& offer = Update({{.address = "0000:19:00.0", .group = 1},
                               {.address = "0000:1a:00.0", .group = 1},
                               {.address = "0000:1b:00.0", .group = 2}});
  ASSERT_THAT(Ids(offer.resources.at(0)), ElementsAre("0000:19:00.0", "0000:1b:00.0"));
  EXPECT_THAT(offer.resources[0].devices[0].members,
              ElementsAre(Pci("0000:19:00.0"), Pci("0000:1a:00.0")));
  EXPECT_THAT(events_.TakeNames(), Contains("devices_grouped"));
}

TEST_F(CatalogueTest, AGroupsHealthNeedsAllOfIt) {
  Update({{.address = "0000:19:00.0", .group = 1}, {.address = "0000:1a:00.0", .group = 1}});
  const Offer& offer = Update({{.address = "0000:19:00.0", .group = 1},
                               {.address = "0000:1a:00.0", .group = 1, .driver = "nvidia"}});
  ASSERT_THAT(Ids(offer.resources.at(0)), ElementsAre("0000:19:00.0"));
  EXPECT_FALSE(offer.resources[0].devices[0].healthy);
}

TEST_F(CatalogueTest, TheRestOfAGroupIsNotOfferedWhileItsLeadIsGone) {
  Update({{.address = "0000:19:00.0", .group = 1}, {.address = "0000:1a:00.0", .group = 1}});
  const Offer& offer = Update({{.address = "0000:1a:00.0", .group = 1}});
  ASSERT_THAT(Ids(offer.resources.at(0)), ElementsAre("0000:19:00.0"));
  EXPECT_FALSE(offer.resources[0].devices[0].healthy);
}

TEST_F(CatalogueTest, GroupsFollowTheKernel) {
  Update({{.address = "0000:19:00.0", .group = 1}, {.address = "0000:1a:00.0", .group = 2}});
  const Offer& joined =
      Update({{.address = "0000:19:00.0", .group = 1}, {.address = "0000:1a:00.0", .group = 1}});
  EXPECT_THAT(Ids(joined.resources.at(0)), ElementsAre("0000:19:00.0"));
  const Offer& apart =
      Update({{.address = "0000:19:00.0", .group = 1}, {.address = "0000:1a:00.0", .group = 2}});
  EXPECT_THAT(Ids(apart.resources.at(0)), ElementsAre("0000:19:00.0", "0000:1a:00.0"));
}

TEST_F(CatalogueTest, TwoDeviceIdsOfOneNameAreOneResource) {
  const Offer& offer = Update({{.address = "0000:19:00.0", .group = 1, .device = 0x20b1},
                               {.address = "0000:1a:00.0", .group = 2, .device = 0x20f1}});
  ASSERT_THAT(offer.resources, SizeIs(1));
  EXPECT_THAT(offer.resources[0].devices, SizeIs(2));
}

TEST_F(CatalogueTest, ARenamedResourceIsAWarning) {
  Update({{.address = "0000:19:00.0", .group = 1}});
  NamingOptions naming;
  naming.names = {{0x2330, "gpu"}};
  contract_ = MakeKubevirtContract(naming, TestPciIds(), tenancy::FabricMode::kAdvise).value();
  Restart();
  events_.Take();
  const Offer& offer = Update({{.address = "0000:19:00.0", .group = 1}});
  EXPECT_THAT(offer.retired, ElementsAre(kH100));
  EXPECT_THAT(events_.TakeNames(), Contains("resource_renamed"));
  EXPECT_THAT(Update({{.address = "0000:19:00.0", .group = 1}}).retired, IsEmpty());
}

TEST_F(CatalogueTest, APodsDeviceIsFoundUnderAFormerName) {
  const Offer& before = Update({{.address = "0000:19:00.0", .group = 1}});
  const std::string id = before.resources[0].devices[0].id;
  EXPECT_EQ(before.FindDevice("nvidia.com/gpu", id), nullptr);
  NamingOptions naming;
  for (const char* name : {"gpu", "card"}) {
    naming.names = {{0x2330, name}};
    contract_ = MakeKubevirtContract(naming, TestPciIds(), tenancy::FabricMode::kAdvise).value();
    Restart();
    Update({{.address = "0000:19:00.0", .group = 1}});
  }
  Restart();  // and over restarts
  const Offer& offer = Update({{.address = "0000:19:00.0", .group = 1}});
  for (const std::string& name :
       {std::string(kH100), std::string("nvidia.com/gpu"), std::string("nvidia.com/card")}) {
    const OfferedDevice* device = offer.FindDevice(name, id);
    ASSERT_NE(device, nullptr) << name;
    EXPECT_EQ(device->address, Pci("0000:19:00.0"));
  }
  EXPECT_EQ(offer.FindDevice("nvidia.com/other", id), nullptr);
  EXPECT_EQ(offer.FindDevice(kH100, "99"), nullptr);
}

TEST_F(CatalogueTest, ASwitchUnderAGpusNameIsNotOffered) {
  NamingOptions naming;
  naming.names = {{0x22a3, "pgpu"}};
  contract_ = MakeKataContract(naming, TestPciIds(), tenancy::FabricMode::kOff).value();
  const Offer& offer =
      Update({{.address = "0000:07:00.0", .group = 9, .device = 0x22a3, .nvswitch = true},
              {.address = "0000:19:00.0", .group = 1}});
  ASSERT_THAT(offer.resources, SizeIs(1));
  EXPECT_THAT(offer.resources[0].devices, SizeIs(1));
}

TEST_F(CatalogueTest, KataUsesCdevNumbersOnlyIfEveryDeviceHasOne) {
  UseKata();
  const Offer& iommufd = Update({{.address = "0000:19:00.0", .group = 11, .cdev = "vfio1"},
                                 {.address = "0000:1a:00.0", .group = 12, .cdev = "vfio0"}});
  EXPECT_THAT(Ids(iommufd.resources.at(0)), ElementsAre("1", "0"));
  EXPECT_EQ(iommufd.resources[0].node_backend, pci::Backend::kIommufd);
  const Offer& legacy = Update({{.address = "0000:19:00.0", .group = 11, .cdev = "vfio1"},
                                {.address = "0000:1a:00.0", .group = 12}});
  EXPECT_THAT(Ids(legacy.resources.at(0)), ElementsAre("11", "12"));
}

TEST_F(CatalogueTest, KataIdsStayWhenADeviceIsRebound) {
  UseKata();
  Update({{.address = "0000:19:00.0", .group = 11, .cdev = "vfio1"},
          {.address = "0000:1a:00.0", .group = 12, .cdev = "vfio0"}});
  const Offer& offer = Update({{.address = "0000:19:00.0", .group = 11, .cdev = "vfio1"},
                               {.address = "0000:1a:00.0", .group = 12, .driver = "nvidia"}});
  EXPECT_THAT(Ids(offer.resources.at(0)), ElementsAre("1", "0"));
  EXPECT_FALSE(offer.resources[0].devices[1].healthy);
  EXPECT_THAT(offer.resources[0].devices[1].cdi_nodes, IsEmpty());
}

TEST_F(CatalogueTest, KataNeverOffersOneNumberTwice) {
  UseKata();
  Update({{.address = "0000:19:00.0", .group = 11, .cdev = "vfio0"},
          {.address = "0000:1a:00.0", .group = 12, .cdev = "vfio1"}});
  Restart();  // the node came back without the first one, and the numbers moved
  events_.Take();
  const Offer& offer = Update({{.address = "0000:1a:00.0", .group = 11, .cdev = "vfio0"}});
  ASSERT_THAT(offer.resources.at(0).devices, SizeIs(1));
  EXPECT_EQ(offer.resources[0].devices[0].address, Pci("0000:1a:00.0"));
  EXPECT_EQ(offer.resources[0].devices[0].id, "0");
  EXPECT_THAT(events_.TakeNames(), Contains("device_not_offered"));
}

TEST_F(CatalogueTest, ABrokenMemoryIsReportedAndLearnedAnew) {
  Restart();
  ASSERT_TRUE(store_->Put("device", "0000:19:00.0", "{\"kind\": 7}").ok());
  ASSERT_TRUE(store_->Put("device", "nonsense", "{}").ok());
  Restart();
  EXPECT_THAT(events_.TakeNames(), ElementsAre("store_failed", "store_failed"));
  EXPECT_THAT(Update({{.address = "0000:19:00.0", .group = 1}}).resources, SizeIs(1));
  Restart();
  EXPECT_THAT(events_.TakeNames(), Not(Contains("store_failed")));
}

TEST_F(CatalogueTest, WritesCdiFilesOfItsOffer) {
  UseKata();
  const Offer& offer = Update({{.address = "0000:19:00.0", .group = 11, .cdev = "vfio1"}});
  ASSERT_TRUE(WriteCdiSpecs(folder_, offer).ok());
  const auto text = ReadFile(folder_ + "/nvidia.com-pgpu.yaml", 4096);
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(*text, HasSubstr("kind: \"nvidia.com/pgpu\""));
  EXPECT_THAT(*text, HasSubstr("name: \"1\""));
  EXPECT_THAT(*text, HasSubstr("/dev/vfio/devices/vfio1"));
  Offer renamed;
  renamed.retired = {"nvidia.com/pgpu", "nvidia.com/2330"};
  EXPECT_TRUE(WriteCdiSpecs(folder_, renamed).ok());
  EXPECT_TRUE(absl::IsNotFound(ReadFile(folder_ + "/nvidia.com-pgpu.yaml", 4096).status()));
}

TEST_F(CatalogueTest, ABlockedDeviceIsUnhealthyWithItsReasonWhileItIs) {
  const std::vector<testing::FakeDevice> devices = {{.address = "0000:19:00.0", .group = 1},
                                                    {.address = "0000:1a:00.0", .group = 2}};
  Update(devices);
  events_.Take();
  const tenancy::BlockedDevices blocked = {{Pci("1a:00.0"), "the fabric is dirty"},
                                           {Pci("3b:00.0"), "no device of this node"}};
  const Resource& resource = Update(devices, blocked).resources.at(0);
  EXPECT_TRUE(resource.FindByAddress(Pci("19:00.0"))->healthy);
  EXPECT_FALSE(resource.FindByAddress(Pci("1a:00.0"))->healthy);
  const auto events = events_.Take();
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].name, "device_unhealthy");
  EXPECT_THAT(events[0].message, HasSubstr("the fabric is dirty"));

  Update(devices, blocked);
  EXPECT_THAT(events_.TakeNames(), IsEmpty()) << "nothing has changed";
  Update(devices, {{Pci("1a:00.0"), "Fabric Manager is down"}});
  EXPECT_THAT(events_.TakeNames(), ElementsAre("device_unhealthy")) << "another reason";
  EXPECT_TRUE(Update(devices).resources.at(0).FindByAddress(Pci("1a:00.0"))->healthy);
  EXPECT_THAT(events_.TakeNames(), ElementsAre("device_healthy"));
}

TEST_F(CatalogueTest, OneBlockedMemberBlocksItsGroup) {
  const Offer& offer =
      Update({{.address = "0000:19:00.0", .group = 1}, {.address = "0000:1a:00.0", .group = 1}},
             {{Pci("1a:00.0"), "held by nobody we know"}});
  EXPECT_EQ(offer.resources.at(0).devices.at(0).why_unhealthy, "held by nobody we know");
}

TEST_F(CatalogueTest, WhatNoVmCanTakeSaysSoThoughItIsBlockedToo) {
  Update({{.address = "0000:19:00.0", .group = 1}});
  const Offer& offer = Update({{.address = "0000:19:00.0", .group = 1, .driver = "nvidia"}},
                              {{Pci("19:00.0"), "the fabric is dirty"}});
  EXPECT_THAT(offer.resources.at(0).devices.at(0).why_unhealthy, HasSubstr("nvidia"));
}

}  // namespace
}  // namespace switchyard::kube
