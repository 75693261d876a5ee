// SPDX-License-Identifier: Apache-2.0
#include "tenancy/tenancies.h"

#include <gtest/gtest.h>

#include <thread>

#include "absl/strings/match.h"
#include "tenancy/holdings.h"
#include "tenancy/testing/tenancies_fixture.h"

namespace switchyard::tenancy {
namespace {

using testing::Addresses;
using testing::Gpu;
using testing::H100;
using testing::Names;
using testing::Pci;

class AcquireTest : public testing::TenanciesFixture {};

// ---- Acquire -----------------------------------------------------------------------------------

TEST_F(AcquireTest, GrantsInRequestOrderWithWholeGroups) {
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

TEST_F(AcquireTest, ResolvesAtTheMomentOfTheGrant) {
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

TEST_F(AcquireTest, RefusesWithWhatToDo) {
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

TEST_F(AcquireTest, AdmitsASetThatIsNoPartitionAndSaysSo) {
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

TEST_F(AcquireTest, NvSwitchesAreGrantedWithoutACheck) {
  tree_.AddNvSwitch("0000:07:00.0", 90);
  Start();
  const auto grant = tenancies_->Acquire(Addresses{Pci("0000:07:00.0")});
  ASSERT_TRUE(grant.ok()) << grant.status();
  EXPECT_EQ(events_.TakeNames(), Names{});
  EXPECT_TRUE(Busy().empty());
}

// ---- who holds what ----------------------------------------------------------------------------

TEST_F(AcquireTest, BusyIsTheViewAndOurOwnGrants) {
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
TEST_F(AcquireTest, KnowsTheBusyGpusThatKubeletDoesNotName) {
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

TEST_F(AcquireTest, WhatKubeletOffersIsNotBusy) {
  Start();
  source_.Assign(Gpu(8), "default/just-gone");
  ASSERT_TRUE(Refresh());
  EXPECT_EQ(Prefer({1, 2, 3, 4, 5, 6, 7, 8}, 8).partition, 0);
}

TEST_F(AcquireTest, AGrantIsBelievedUntilKubeletHadTimeToRecordIt) {
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

TEST_F(AcquireTest, AViewThatCannotBeReadKeepsTheFormerOne) {
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

TEST_F(AcquireTest, TheViewIsNeverReadDuringAnAdmission) {
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

TEST_F(AcquireTest, AnAdmissionWaitsForAListInFlight) {
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

TEST_F(AcquireTest, AGpuThatLeftIsStillBusyByItsModule) {
  Start();
  source_.Assign(Gpu(8), "default/a");
  tree_.Remove(Gpu(8).ToString());
  Scan();
  ASSERT_TRUE(Refresh());
  EXPECT_EQ(Busy(), fabric::ModuleSet{8});
}

// A larger partition with a GPU that no VM can take is not worth keeping.
TEST_F(AcquireTest, AGpuThatIsNotReadyBreaksItsPartitions) {
  Start();
  EXPECT_EQ(Prefer({1, 3, 5, 7}, 2).partition, 3);
  tree_.SetDriver(Gpu(6).ToString(), "nvidia");
  Scan();
  EXPECT_EQ(Prefer({1, 3, 5, 7}, 2).partition, 5);
}

TEST_F(AcquireTest, ManyThreadsAtOnce) {
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
