// SPDX-License-Identifier: Apache-2.0
// The core in enforce over a board on disk: that the Enforcer is asked, and that what it changed is
// seen by everybody else.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "pci/testing/tree.h"
#include "tenancy/testing/enforcer_fixture.h"
#include "tenancy/testing/tenancies_fixture.h"

namespace switchyard::tenancy {
namespace {

using ::testing::ElementsAre;
using testing::Gpu;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TenanciesEnforceTest : public testing::TenanciesFixture {
 protected:
  TenanciesEnforceTest() : holders_(clock_) {
    WithStore();
    Begin();
  }
  // A new agent; the state file, Fabric Manager and kubelet stay.
  void Begin(BootId boot = {1, 1}) {
    tenancies_.reset();
    Options options{tree_.root(), FabricMode::kEnforce, fabric::Policy::kPack, {}, {}};
    options.enforce.boot = boot;
    Parts parts{&clock_, &events_, store_.get(), &fabric_};
    parts.control = &fabric_;
    parts.holders = &holders_;
    tenancies_ = std::make_unique<Tenancies>(std::move(options), std::move(parts));
    tenancies_->SetAssignmentSource(&source_);
    fabric_.modules = *reader_.nvml;
    Scan();
    tenancies_->RefreshFabric();
    (void)events_.Take();
  }

  // ModelFabric with a module map.
  class Fabric : public testing::ModelFabric {
   public:
    Result<fabric::ModuleEntries> ReadModuleIds() override { return modules; }
    fabric::ModuleEntries modules;
  };
  Fabric fabric_;
  testing::ModelHolders holders_;
};

TEST_F(TenanciesEnforceTest, AGrantIsAnActivePartition) {
  const auto grant = Acquire({1, 3});
  ASSERT_TRUE(grant.ok()) << grant.status();
  EXPECT_EQ(grant->partition, 3);
  EXPECT_THAT(fabric_.Active(), ElementsAre(3));
  EXPECT_TRUE(tenancies_->View().table.Find(3)->active) << "seen without another probe";
  EXPECT_EQ(Busy(), (fabric::ModuleSet{1, 3}));
  EXPECT_EQ(tenancies_->Enforced()->tenancies.size(), 1u);
}

TEST_F(TenanciesEnforceTest, ARefusalIsNoGrant) {
  EXPECT_EQ(Acquire({1, 2}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(Busy().empty());
}

TEST_F(TenanciesEnforceTest, WhatWasNotHandedOverIsReleased) {
  const auto grant = Acquire({1, 3});
  ASSERT_TRUE(grant.ok());
  tenancies_->Release(grant->id);
  EXPECT_THAT(fabric_.Active(), IsEmpty());
  EXPECT_FALSE(tenancies_->View().table.Find(3)->active);
  EXPECT_TRUE(Busy().empty());
}

TEST_F(TenanciesEnforceTest, AGrantOfWhatWasThereIsNotReleasedWithIt) {
  ASSERT_TRUE(Acquire({1, 3}).ok());
  const auto again = Acquire({1, 3});
  ASSERT_TRUE(again.ok());
  tenancies_->Release(again->id);
  EXPECT_THAT(fabric_.Active(), ElementsAre(3));
}

TEST_F(TenanciesEnforceTest, NobodyIsJoinedWithATenant) {
  ASSERT_TRUE(Acquire({1, 3}).ok());
  // kubelet offers the GPUs of a pod that it has forgotten only in part.
  EXPECT_THAT(Prefer({1, 2, 4}, 1).devices, ElementsAre(Gpu(2)));
  EXPECT_THAT(Prefer({1}, 1).devices, IsEmpty());
}

// kubelet has lost its checkpoint, or a container outlived its pod.
TEST_F(TenanciesEnforceTest, WhatIsHeldIsPreferredLastThoughKubeletOffersIt) {
  ASSERT_TRUE(Acquire({1, 3}).ok());
  for (const int module : {1, 3}) holders_.held.insert(Gpu(module));
  ASSERT_TRUE(Refresh());
  tenancies_->Reconcile();
  EXPECT_EQ(Prefer({1, 2, 3, 4, 5, 6, 7, 8}, 2).partition, 4) << "not 3, though it is active";
  EXPECT_EQ(Prefer({1, 2, 3, 4}, 2, {3}).partition, 3) << "kubelet insists";
  EXPECT_EQ(Prefer({1, 3}, 2).partition, 3) << "nothing else fits: Allocate says why not";
  holders_.held.clear();
  tenancies_->Reconcile();
  EXPECT_EQ(Prefer({1, 2, 3, 4, 5, 6, 7, 8}, 2).partition, 3);
}

TEST_F(TenanciesEnforceTest, WhatWasRefusedAsHeldIsNotPreferredNext) {
  ASSERT_TRUE(Acquire({1, 3}).ok());
  for (const int module : {1, 3}) holders_.held.insert(Gpu(module));
  EXPECT_EQ(Acquire({1, 3}).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Prefer({1, 2, 3, 4, 5, 6, 7, 8}, 2).partition, 4);
}

TEST_F(TenanciesEnforceTest, WhatHasNoKnownOutcomeIsPreferredLast) {
  fabric_.failures.push_back({absl::DeadlineExceededError("hung"), false});
  EXPECT_FALSE(Acquire({1, 3}).ok());
  tenancies_->RefreshFabric();
  EXPECT_EQ(Prefer({1, 2, 3, 4}, 2).partition, 4);
  EXPECT_EQ(Prefer({1, 3}, 2).partition, 3);
}

TEST_F(TenanciesEnforceTest, ATenancySurvivesTheAgentAndIsReleasedInTheEnd) {
  ASSERT_TRUE(Acquire({1, 3}).ok());
  Begin();
  EXPECT_EQ(Busy(), (fabric::ModuleSet{1, 3}));
  for (int i = 0; i < 9; ++i) {
    clock_.Advance(absl::Seconds(10));
    tenancies_->RefreshFabric();
    ASSERT_TRUE(Refresh());
    tenancies_->Reconcile();
  }
  EXPECT_THAT(fabric_.Active(), IsEmpty());
  EXPECT_TRUE(Busy().empty());
}

TEST_F(TenanciesEnforceTest, AfterARebootAContainerStartActivates) {
  ASSERT_TRUE(Acquire({1, 3}).ok());
  fabric_.SetActive(3, false);
  Begin({2, 2});
  const auto devices = Gpus({1, 3});
  EXPECT_TRUE(tenancies_->PreStart(devices).ok()) << tenancies_->PreStart(devices);
  EXPECT_THAT(fabric_.Active(), ElementsAre(3));
  const auto others = Gpus({2});
  EXPECT_FALSE(tenancies_->PreStart(others).ok());
}

TEST_F(TenanciesEnforceTest, WithoutFabricManagerWhatNobodyHasIsUnhealthy) {
  ASSERT_TRUE(Acquire({1, 3}).ok());
  EXPECT_THAT(tenancies_->Blocked(), IsEmpty());
  fabric_.down = absl::UnavailableError("connection refused");
  tenancies_->RefreshFabric();
  const BlockedDevices blocked = tenancies_->Blocked();
  EXPECT_EQ(blocked.size(), 6u);
  EXPECT_FALSE(blocked.contains(Gpu(1)));
  EXPECT_THAT(blocked.at(Gpu(2)), HasSubstr("connection refused"));
}

TEST_F(TenanciesEnforceTest, AnUnknownBootIsReadFromTheHostRoot) {
  Begin(BootId{});
  const auto refused = Acquire({1, 3});
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("boot id"));
  std::filesystem::create_directories(tree_.root().Path("proc/sys/kernel/random"));
  std::ofstream(tree_.root().Path("proc/sys/kernel/random/boot_id"))
      << "1b4e28ba-2fa1-11d2-883f-0016d3cca427\n";
  Begin(BootId{});
  EXPECT_TRUE(Acquire({1, 3}).ok());
  EXPECT_EQ(tenancies_->Enforced()->tenancies.at(0).record.boot.ToString(),
            "1b4e28ba-2fa1-11d2-883f-0016d3cca427");
}

TEST_F(TenanciesEnforceTest, WithoutStateNothingIsGranted) {
  store_.reset();
  Begin();
  EXPECT_EQ(tenancies_->JournalStatus().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(Acquire({1, 3}).ok());
  EXPECT_THAT(fabric_.calls, IsEmpty());
}

TEST_F(TenanciesEnforceTest, OtherModesHaveNoTenancies) {
  Start(FabricMode::kAdvise);
  EXPECT_FALSE(tenancies_->Drain(true).ok());
  EXPECT_FALSE(tenancies_->Enforced().has_value());
  EXPECT_THAT(tenancies_->Blocked(), IsEmpty());
  EXPECT_TRUE(tenancies_->PreStart(Gpus({1})).ok());
}

}  // namespace
}  // namespace switchyard::tenancy
