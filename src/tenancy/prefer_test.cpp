// SPDX-License-Identifier: Apache-2.0
#include "tenancy/tenancies.h"

#include <gtest/gtest.h>

#include <thread>

#include "absl/strings/match.h"
#include "tenancy/testing/tenancies_fixture.h"

namespace switchyard::tenancy {
namespace {

using testing::Addresses;
using testing::Gpu;
using testing::H100;
using testing::Names;

class PreferTest : public testing::TenanciesFixture {};

// ---- Prefer: partitions, never positions in a list --------------------------------------------

TEST_F(PreferTest, PrefersAPartitionNotNeighboursOnTheBus) {
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

TEST_F(PreferTest, PrefersAnActivePartition) {
  reader_.list = H100({6});
  Start();
  const Preference preference = Prefer({1, 2, 3, 4, 5, 6, 7, 8}, 2);
  EXPECT_EQ(preference.partition, 6);
  EXPECT_TRUE(preference.active);
}

TEST_F(PreferTest, KeepsTheMustInclude) {
  Start();
  EXPECT_EQ(Prefer({1, 2, 3, 4, 5, 6, 7, 8}, 2, {8}).devices, Gpus({6, 8}));
  EXPECT_EQ(Prefer({1, 2, 3, 4}, 2, {1, 2}).devices, Addresses{}) << "no partition holds both";
}

TEST_F(PreferTest, NoPreferenceHasAReason) {
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

TEST_F(PreferTest, AnUnmappedGpuIsNotSelectable) {
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

TEST_F(PreferTest, WithoutAnyMapNothingIsTakenForAModule) {
  reader_.nvml = fabric::ModuleEntries{};
  Start();
  const Preference preference = Prefer({1, 2, 3, 4, 5, 6, 7, 8}, 1);
  EXPECT_TRUE(preference.devices.empty());
  EXPECT_EQ(preference.unmapped.size(), 8u);
}

TEST_F(PreferTest, WithoutATableThereIsNoPreference) {
  reader_.list = absl::NotFoundError("libnvfm.so.1 is not on this machine");
  Start();
  const Preference preference = Prefer({1, 2, 3, 4}, 2);
  EXPECT_TRUE(preference.devices.empty());
  EXPECT_TRUE(absl::StrContains(preference.reason, "libnvfm.so.1")) << preference.reason;
}

TEST_F(PreferTest, GoesOnWithTheLastTable) {
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

TEST_F(PreferTest, PreferGoesOnWhileFabricManagerHangs) {
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

TEST_F(PreferTest, OffPrefersNumaNodesAndReadsNoFabric) {
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

TEST_F(PreferTest, AnUnknownNodeIsNotNodeZero) {
  tree_.SetFile(Gpu(2).ToString(), "numa_node", "-1\n");
  tree_.SetFile(Gpu(4).ToString(), "numa_node", "-1\n");
  Start(FabricMode::kOff);
  EXPECT_EQ(Prefer({2, 4, 1, 3}, 2).devices, Gpus({1, 3}));
}

// ---- groups ------------------------------------------------------------------------------------

TEST_F(PreferTest, TwoGpusInOneGroupAreOneDevice) {
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

TEST_F(PreferTest, AGroupWithAnUnmappedGpuIsUnmapped) {
  tree_.SetGroup(Gpu(3).ToString(), 102);
  reader_.nvml->erase(Gpu(3));
  Start();
  const Preference preference = Prefer({1, 2, 4}, 1);
  EXPECT_EQ(preference.unmapped, Gpus({1}));
  EXPECT_EQ(preference.devices, Gpus({2}));
}

}  // namespace
}  // namespace switchyard::tenancy
