// SPDX-License-Identifier: Apache-2.0
#include "tenancy/tenancies.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "pci/testing/tree.h"
#include "tenancy/holdings.h"
#include "tenancy/testing/fakes.h"

namespace switchyard::tenancy {
namespace {

using testing::H100;
using testing::Pci;
using Names = std::vector<std::string>;
using Addresses = std::vector<PciAddress>;

// One real board: module of the GPUs in bus order. Not the identity: module ids are no indices.
constexpr std::array<const char*, 8> kBus = {"0000:19:00.0", "0000:3b:00.0", "0000:4c:00.0",
                                             "0000:5d:00.0", "0000:9b:00.0", "0000:bb:00.0",
                                             "0000:cb:00.0", "0000:db:00.0"};
constexpr std::array<int, 8> kModule = {2, 4, 1, 3, 7, 5, 6, 8};

PciAddress Gpu(int module) {
  for (size_t i = 0; i < kBus.size(); ++i) {
    if (kModule[i] == module) return Pci(kBus[i]);
  }
  return {};
}

class TenanciesTest : public ::testing::Test {
 protected:
  TenanciesTest() {
    for (size_t i = 0; i < kBus.size(); ++i) {
      tree_.AddGpu(kBus[i], 100 + static_cast<int>(i), i < 4 ? 0 : 1);
      reader_.nvml->emplace(Pci(kBus[i]), kModule[i]);
    }
    reader_.list = H100();
  }
  ~TenanciesTest() override {
    if (!state_folder_.empty()) std::filesystem::remove_all(state_folder_);
  }

  void Start(FabricMode mode = FabricMode::kAdvise) {
    tenancies_ = std::make_unique<Tenancies>(Options{tree_.root(), mode, fabric::Policy::kPack, {}},
                                             Parts{&clock_, &events_, store_.get(), &reader_});
    Scan();
    tenancies_->RefreshFabric();
    (void)events_.Take();
  }
  void WithStore() {
    char name[] = "/tmp/tenancy-XXXXXX";
    state_folder_ = ::mkdtemp(name);
    store_ = store::Store::Open(state_folder_, store::Store::Mode::kReadWrite).value().store;
  }
  void Scan() {
    tenancies_->SetInventory(
        std::make_shared<const pci::Inventory>(pci::Scan(tree_.root()).value()));
  }

  static Addresses Gpus(const std::vector<int>& modules) {
    Addresses addresses;
    for (const int m : modules) addresses.push_back(Gpu(m));
    return addresses;
  }
  Preference Prefer(const std::vector<int>& available, int size,
                    const std::vector<int>& must = {}) {
    return tenancies_->Prefer(Gpus(available), Gpus(must), size);
  }
  Result<Grant> Acquire(const std::vector<int>& modules) {
    return tenancies_->Acquire(Gpus(modules));
  }
  bool Refresh() { return tenancies_->RefreshAssignments(source_); }
  fabric::ModuleSet Busy() { return tenancies_->View().busy; }

  pci::testing::SysfsTree tree_;
  SimClock clock_;
  testing::FakeEvents events_;
  testing::FakeReader reader_;
  testing::FakeSource source_;
  std::string state_folder_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<Tenancies> tenancies_;
};

// ---- Prefer: partitions, never positions in a list --------------------------------------------

TEST_F(TenanciesTest, PrefersAPartitionNotNeighboursOnTheBus) {
  Start();
  // 2 and 4 are neighbours on the bus and a partition, 2 and 1 are only neighbours.
  const Preference preference = Prefer({4, 1, 2, 3}, 2);
  EXPECT_EQ(preference.partition, 3);
  EXPECT_EQ(preference.devices, Gpus({1, 3})) << "in the order of the modules";
  EXPECT_EQ(preference.candidates, 2);
  EXPECT_FALSE(preference.active);
  EXPECT_FALSE(preference.reason.empty());
  EXPECT_EQ(Prefer({2, 1, 4}, 2).devices, Gpus({2, 4}));
}

TEST_F(TenanciesTest, PrefersAnActivePartition) {
  reader_.list = H100({6});
  Start();
  const Preference preference = Prefer({1, 2, 3, 4, 5, 6, 7, 8}, 2);
  EXPECT_EQ(preference.partition, 6);
  EXPECT_TRUE(preference.active);
}

TEST_F(TenanciesTest, KeepsTheMustInclude) {
  Start();
  EXPECT_EQ(Prefer({1, 2, 3, 4, 5, 6, 7, 8}, 2, {8}).devices, Gpus({6, 8}));
  EXPECT_EQ(Prefer({1, 2, 3, 4}, 2, {1, 2}).devices, Addresses{}) << "no partition holds both";
}

TEST_F(TenanciesTest, NoPreferenceHasAReason) {
  Start();
  const Preference three = Prefer({1, 2, 3, 4}, 3);
  EXPECT_TRUE(three.devices.empty());
  EXPECT_TRUE(absl::StrContains(three.reason, "no partition has 3 GPUs")) << three.reason;
  EXPECT_TRUE(Prefer({1, 2}, 2).devices.empty());
  EXPECT_FALSE(Prefer({}, 1).reason.empty());
  EXPECT_FALSE(Prefer({1}, 0).reason.empty());
  EXPECT_FALSE(Prefer({1}, -5).reason.empty());
  EXPECT_FALSE(Prefer({1}, 1 << 30).reason.empty());
}

TEST_F(TenanciesTest, AnUnmappedGpuIsNotSelectable) {
  reader_.nvml->erase(Gpu(3));
  Start();
  const Preference pair = Prefer({1, 2, 3, 4}, 2);
  EXPECT_EQ(pair.devices, Gpus({2, 4})) << "3 is FM's id, but nobody knows which GPU that is";
  EXPECT_EQ(pair.unmapped, Gpus({3}));
  const Preference with = Prefer({1, 2, 3, 4}, 2, {3});
  EXPECT_TRUE(with.devices.empty());
  EXPECT_TRUE(absl::StrContains(with.reason, Gpu(3).ToString())) << with.reason;
  EXPECT_TRUE(absl::StrContains(with.reason, "module map")) << with.reason;
}

TEST_F(TenanciesTest, WithoutAnyMapNothingIsTakenForAModule) {
  reader_.nvml = fabric::ModuleEntries{};
  Start();
  const Preference preference = Prefer({1, 2, 3, 4, 5, 6, 7, 8}, 1);
  EXPECT_TRUE(preference.devices.empty());
  EXPECT_EQ(preference.unmapped.size(), 8u);
}

TEST_F(TenanciesTest, WithoutATableThereIsNoPreference) {
  reader_.list = absl::NotFoundError("libnvfm.so.1 is not on this machine");
  Start();
  const Preference preference = Prefer({1, 2, 3, 4}, 2);
  EXPECT_TRUE(preference.devices.empty());
  EXPECT_TRUE(absl::StrContains(preference.reason, "libnvfm.so.1")) << preference.reason;
}

TEST_F(TenanciesTest, GoesOnWithTheLastTable) {
  WithStore();
  Start();
  reader_.list = absl::UnavailableError("down");
  tenancies_->RefreshFabric();
  const Preference preference = Prefer({1, 2, 3, 4}, 2);
  EXPECT_EQ(preference.devices, Gpus({1, 3}));
  EXPECT_TRUE(absl::StrContains(preference.reason, "not answering")) << preference.reason;

  reader_.nvml = fabric::ModuleEntries{};  // all on vfio now
  Start();
  EXPECT_EQ(Prefer({1, 2, 3, 4}, 2).devices, Gpus({1, 3})) << "over a restart";
  EXPECT_FALSE(tenancies_->View().up);
  EXPECT_TRUE(tenancies_->View().known);
}

TEST_F(TenanciesTest, PreferGoesOnWhileFabricManagerHangs) {
  Start();
  auto& block = reader_.BlockReads();
  std::thread refresh([this] { tenancies_->RefreshFabric(); });
  block.reached.WaitForNotification();
  EXPECT_EQ(Prefer({1, 2, 3, 4}, 2).devices, Gpus({1, 3}));
  EXPECT_TRUE(Acquire({1, 3}).ok());
  Scan();
  EXPECT_TRUE(Refresh());
  EXPECT_TRUE(tenancies_->View().up);
  block.go.Notify();
  refresh.join();
}

// ---- off ---------------------------------------------------------------------------------------

TEST_F(TenanciesTest, OffPrefersNumaNodesAndReadsNoFabric) {
  Start(FabricMode::kOff);
  EXPECT_FALSE(tenancies_->View().known);
  const Preference preference = Prefer({8, 6, 2, 1}, 2);
  EXPECT_EQ(preference.devices, Gpus({2, 1})) << "node 0, lowest addresses";
  EXPECT_EQ(preference.partition, std::nullopt);
  EXPECT_EQ(Prefer({8, 6, 2}, 2).devices, Gpus({6, 8}));
  EXPECT_EQ(Prefer({8, 6, 2}, 2, {2}).devices, Gpus({2, 6}));
  const auto grant = Acquire({1, 2});
  ASSERT_TRUE(grant.ok()) << grant.status();
  EXPECT_EQ(events_.TakeNames(), Names{});
}

TEST_F(TenanciesTest, AnUnknownNodeIsNotNodeZero) {
  tree_.SetFile(Gpu(2).ToString(), "numa_node", "-1\n");
  tree_.SetFile(Gpu(4).ToString(), "numa_node", "-1\n");
  Start(FabricMode::kOff);
  EXPECT_EQ(Prefer({2, 4, 1, 3}, 2).devices, Gpus({1, 3}));
}

// ---- groups ------------------------------------------------------------------------------------

TEST_F(TenanciesTest, TwoGpusInOneGroupAreOneDevice) {
  tree_.SetGroup(Gpu(3).ToString(), 102);  // module 1's group, under the address of module 1
  Start();
  Addresses available = Gpus({1, 2, 4, 5, 6, 7, 8});  // kubelet knows no device for module 3
  EXPECT_EQ(tenancies_->Prefer(available, {}, 1).devices, Gpus({1}))
      << "partition 3 is one device and breaks nothing smaller";
  const Preference quad = tenancies_->Prefer(available, {}, 3);
  EXPECT_EQ(quad.partition, 1);
  EXPECT_EQ(quad.devices, Gpus({1, 2, 4}));

  const auto grant = Acquire({1});
  ASSERT_TRUE(grant.ok()) << grant.status();
  ASSERT_EQ(grant->devices[0].functions.size(), 2u);
  EXPECT_EQ(grant->devices[0].functions[0].address, Gpu(1));
  EXPECT_EQ(grant->devices[0].functions[1].address, Gpu(3));
  EXPECT_EQ(grant->partition, 3);
  EXPECT_EQ(Busy(), (fabric::ModuleSet{1, 3}));

  const auto half = Acquire({3});
  EXPECT_EQ(half.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::StrContains(half.status().message(), Gpu(1).ToString())) << half.status();
}

TEST_F(TenanciesTest, AGroupWithAnUnmappedGpuIsUnmapped) {
  tree_.SetGroup(Gpu(3).ToString(), 102);
  reader_.nvml->erase(Gpu(3));
  Start();
  const Preference preference = Prefer({1, 2, 4}, 1);
  EXPECT_EQ(preference.unmapped, Gpus({1}));
  EXPECT_EQ(preference.devices, Gpus({2}));
}

// ---- Acquire -----------------------------------------------------------------------------------

TEST_F(TenanciesTest, GrantsInRequestOrderWithWholeGroups) {
  const std::string audio = "0000:4c:00.1";
  tree_.AddFunction({.address = audio, .class_code = pci::testing::kClassAudio, .group = 102});
  const std::string usb = "0000:4c:00.2";
  tree_.AddFunction({.address = usb, .class_code = 0x0c0330, .driver = std::nullopt, .group = 102});
  Start();
  const auto grant = Acquire({3, 1});
  ASSERT_TRUE(grant.ok()) << grant.status();
  ASSERT_EQ(grant->devices.size(), 2u);
  EXPECT_EQ(grant->devices[0].address, Gpu(3));
  EXPECT_EQ(grant->devices[0].iommu_group, 103);
  EXPECT_EQ(grant->devices[1].address, Gpu(1));
  EXPECT_EQ(grant->devices[1].iommu_group, 102);
  EXPECT_EQ(grant->devices[1].backend, pci::Backend::kLegacy);
  ASSERT_EQ(grant->devices[1].functions.size(), 2u) << "no driver: nothing to hand over";
  EXPECT_EQ(grant->devices[1].functions[1].address, Pci(audio));
  EXPECT_EQ(grant->partition, 3);
}

TEST_F(TenanciesTest, ResolvesAtTheMomentOfTheGrant) {
  tree_.AddIommufd();
  Start();  // the inventory is that of before
  tree_.SetGroup(Gpu(1).ToString(), 125);
  tree_.SetVfio(Gpu(1).ToString(), 0);
  const auto grant = Acquire({1});
  ASSERT_TRUE(grant.ok()) << grant.status();
  EXPECT_EQ(grant->devices[0].iommu_group, 125);
  EXPECT_EQ(grant->devices[0].backend, pci::Backend::kIommufd);
  EXPECT_EQ(grant->devices[0].functions[0].cdev, "vfio0");
}

TEST_F(TenanciesTest, RefusesWithWhatToDo) {
  Start();
  const auto expect = [&](const Result<Grant>& grant, absl::StatusCode code,
                          const std::vector<std::string>& parts) {
    ASSERT_EQ(grant.status().code(), code) << grant.status();
    for (const std::string& part : parts) {
      EXPECT_TRUE(absl::StrContains(grant.status().message(), part)) << grant.status();
    }
  };
  expect(Acquire({1, 3, 1}), absl::StatusCode::kInvalidArgument, {Gpu(1).ToString(), "once"});
  expect(Acquire({}), absl::StatusCode::kInvalidArgument, {});
  expect(tenancies_->Acquire(Addresses{Pci("0000:ff:00.0")}), absl::StatusCode::kNotFound,
         {"0000:ff:00.0", "gone", "dmesg"});
  tree_.Remove(Gpu(1).ToString());
  expect(Acquire({3, 1}), absl::StatusCode::kNotFound, {Gpu(1).ToString(), "gone"});
  tree_.SetDriver(Gpu(3).ToString(), "nvidia");
  expect(Acquire({3}), absl::StatusCode::kFailedPrecondition,
         {Gpu(3).ToString(), "nvidia", "vfio-pci"});
  tree_.SetDriver(Gpu(5).ToString(), std::nullopt);
  expect(Acquire({5}), absl::StatusCode::kFailedPrecondition, {Gpu(5).ToString(), "vfio-pci"});
  tree_.AddFunction({.address = "0000:9b:00.1",
                     .class_code = pci::testing::kClassAudio,
                     .driver = "snd_hda_intel",
                     .group = 104});
  expect(Acquire({7}), absl::StatusCode::kFailedPrecondition,
         {Gpu(7).ToString(), "0000:9b:00.1", "snd_hda_intel"});
  EXPECT_TRUE(Busy().empty()) << "nothing refused is held";
}

TEST_F(TenanciesTest, AdmitsASetThatIsNoPartitionAndSaysSo) {
  reader_.list = H100({3});
  Start();
  EXPECT_TRUE(Acquire({1, 3}).ok());
  EXPECT_EQ(events_.TakeNames(), Names{});
  const auto wrong = Acquire({2, 5});
  ASSERT_TRUE(wrong.ok()) << wrong.status();
  EXPECT_EQ(wrong->partition, std::nullopt);
  EXPECT_EQ(events_.TakeNames(), Names{"no_partition"});
  EXPECT_EQ(Acquire({6, 8})->partition, 6);
  EXPECT_EQ(events_.TakeNames(), Names{"partition_inactive"});
}

TEST_F(TenanciesTest, NvSwitchesAreGrantedWithoutACheck) {
  tree_.AddNvSwitch("0000:07:00.0", 90);
  Start();
  const auto grant = tenancies_->Acquire(Addresses{Pci("0000:07:00.0")});
  ASSERT_TRUE(grant.ok()) << grant.status();
  EXPECT_EQ(events_.TakeNames(), Names{});
  EXPECT_TRUE(Busy().empty());
}

// ---- who holds what ----------------------------------------------------------------------------

TEST_F(TenanciesTest, BusyIsTheViewAndOurOwnGrants) {
  Start();
  source_.Assign(Gpu(8), "default/a");
  EXPECT_TRUE(Refresh());
  EXPECT_EQ(Busy(), fabric::ModuleSet{8});
  const auto grant = Acquire({1, 3});
  ASSERT_TRUE(grant.ok());
  EXPECT_EQ(Busy(), (fabric::ModuleSet{1, 3, 8}));
  tenancies_->Release(grant->id);
  tenancies_->Release(grant->id);
  tenancies_->Release(12345);
  EXPECT_EQ(Busy(), fabric::ModuleSet{8});
}

// Both quads are whole for a pair but for a GPU that kubelet does not offer here. Who holds that
// GPU decides which quad is worth keeping.
TEST_F(TenanciesTest, KnowsTheBusyGpusThatKubeletDoesNotName) {
  Start();
  EXPECT_EQ(Prefer({1, 3, 5, 7}, 2).partition, 3) << "all equal: lowest id";
  source_.Assign(Gpu(8), "default/a");
  ASSERT_TRUE(Refresh());
  EXPECT_EQ(Prefer({1, 3, 5, 7}, 2).partition, 5) << "the quad of 8 is broken already";
  source_.answer = Assignments{};
  ASSERT_TRUE(Refresh());
  ASSERT_TRUE(Acquire({8}).ok());
  EXPECT_EQ(Prefer({1, 3, 5, 7}, 2).partition, 5) << "by our own grant";
}

TEST_F(TenanciesTest, WhatKubeletOffersIsNotBusy) {
  Start();
  source_.Assign(Gpu(8), "default/just-gone");
  ASSERT_TRUE(Refresh());
  EXPECT_EQ(Prefer({1, 2, 3, 4, 5, 6, 7, 8}, 8).partition, 0);
}

TEST_F(TenanciesTest, AGrantIsBelievedUntilKubeletHadTimeToRecordIt) {
  Start();
  ASSERT_TRUE(Acquire({1, 3}).ok());
  ASSERT_TRUE(Refresh());
  EXPECT_EQ(Busy(), (fabric::ModuleSet{1, 3})) << "kubelet may not have our answer yet";
  source_.Assign(Gpu(1), "default/a");
  ASSERT_TRUE(Refresh());
  source_.answer = Assignments{};
  ASSERT_TRUE(Refresh());
  EXPECT_EQ(Busy(), fabric::ModuleSet{3}) << "1 was recorded, and its pod is gone";
  clock_.Advance(kGrantSettles);
  ASSERT_TRUE(Refresh());
  EXPECT_TRUE(Busy().empty()) << "never recorded: the pod failed";
}

TEST_F(TenanciesTest, AViewThatCannotBeReadKeepsTheFormerOne) {
  Start();
  source_.Assign(Gpu(8), "default/a");
  ASSERT_TRUE(Refresh());
  source_.answer = absl::DeadlineExceededError("no answer in 2s");
  EXPECT_TRUE(Refresh());
  EXPECT_TRUE(Refresh());
  EXPECT_EQ(Busy(), fabric::ModuleSet{8});
  EXPECT_EQ(events_.TakeNames(), Names{"assignments_unreadable"});
  source_.answer = Assignments{};
  EXPECT_TRUE(Refresh());
  EXPECT_TRUE(Busy().empty());
  EXPECT_EQ(events_.TakeNames(), Names{"assignments_readable"});
}

TEST_F(TenanciesTest, TheViewIsNeverReadDuringAnAdmission) {
  Start();
  {
    const auto admission = tenancies_->BeginAdmission();
    EXPECT_FALSE(Refresh());
    EXPECT_EQ(source_.reads, 0);
    EXPECT_EQ(Prefer({1, 3}, 2).devices, Gpus({1, 3}));
  }
  EXPECT_TRUE(Refresh());
  EXPECT_EQ(source_.reads, 1);
}

TEST_F(TenanciesTest, AnAdmissionWaitsForAListInFlight) {
  Start();
  std::thread pod;
  absl::Notification started;
  bool admitted = false;  // guarded by the admission itself
  source_.while_reading = [&] {
    pod = std::thread([&] {
      started.Notify();
      const auto admission = tenancies_->BeginAdmission();
      admitted = true;
    });
    started.WaitForNotification();
    EXPECT_FALSE(admitted);
  };
  EXPECT_TRUE(Refresh());
  pod.join();
  EXPECT_TRUE(admitted);
}

TEST_F(TenanciesTest, AGpuThatLeftIsStillBusyByItsModule) {
  Start();
  source_.Assign(Gpu(8), "default/a");
  tree_.Remove(Gpu(8).ToString());
  Scan();
  ASSERT_TRUE(Refresh());
  EXPECT_EQ(Busy(), fabric::ModuleSet{8});
}

// A larger partition with a GPU that no VM can take is not worth keeping.
TEST_F(TenanciesTest, AGpuThatIsNotReadyBreaksItsPartitions) {
  Start();
  EXPECT_EQ(Prefer({1, 3, 5, 7}, 2).partition, 3);
  tree_.SetDriver(Gpu(6).ToString(), "nvidia");
  Scan();
  EXPECT_EQ(Prefer({1, 3, 5, 7}, 2).partition, 5);
}

TEST_F(TenanciesTest, ManyThreadsAtOnce) {
  Start();
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < 50; ++i) {
        const auto admission = tenancies_->BeginAdmission();
        EXPECT_EQ(Prefer({1, 2, 3, 4, 5, 6, 7, 8}, 2).devices.size(), 2u);
        const auto grant = Acquire({1, 3});
        ASSERT_TRUE(grant.ok());
        tenancies_->Release(grant->id);
      }
    });
  }
  threads.emplace_back([this] {
    for (int i = 0; i < 50; ++i) {
      Scan();
      tenancies_->RefreshFabric();
      (void)Refresh();
      (void)tenancies_->View();
    }
  });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace switchyard::tenancy
