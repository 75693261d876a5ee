// SPDX-License-Identifier: Apache-2.0
#include "tenancy/admit.h"

#include <gmock/gmock.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <stdlib.h>

#include "tenancy/partition_sets.h"
#include "tenancy/testing/fakes.h"

namespace switchyard::tenancy {
namespace {

// RC_PARAMS="seed=..." repeats a failure.
[[maybe_unused]] const int kRuns = ::setenv("RC_PARAMS", "max_success=500", /*overwrite=*/0);

using fabric::ModuleSet;
using ::testing::ElementsAre;
using State = TenancyState;
using What = Admission::What;

class AdmitTest : public ::testing::Test {
 protected:
  void Activate(const std::vector<int>& ids) {
    table_ = fabric::MakeTable(testing::H100(ids), fabric::ModuleMap());
  }
  AdmitTest() { Activate({}); }
  void Add(std::uint64_t id, ModuleSet modules, State state = State::kActive) {
    TenancyRecord record;
    record.id = id;
    record.state = state;
    record.modules = modules;
    ASSERT_TRUE(ledger_.Restore(record).ok());
  }
  void SetOwner(std::uint64_t id, const Owner& owner, bool until_released = false) {
    TenancyRecord record = *ledger_.Find(id);
    record.owner = owner;
    record.until_released = until_released;
    ledger_.Put(record);
  }
  Admission Ask(ModuleSet modules, ModuleSet held = {},
                const std::map<std::string, Possession>& answers = {}) {
    in_.ledger = &ledger_;
    in_.table = &table_;
    in_.listing = &listing_;
    in_.modules = modules;
    claimants_ = ClaimantsOf(in_, Involved(in_));
    for (Claimant& c : claimants_) {
      const auto found = answers.find(c.owner->key);
      if (found != answers.end()) c.answer = found->second;
    }
    return Admit(in_, claimants_, held);
  }

  Ledger ledger_;
  fabric::PartitionTable table_;
  Listing listing_;
  AdmitInput in_;
  Claimants claimants_;
};

TEST_F(AdmitTest, NothingInTheWay) {
  const Admission a = Ask({1, 3});
  EXPECT_EQ(a.what, What::kBegin);
  EXPECT_EQ(a.partition->id, 3);
  EXPECT_FALSE(SomethingInTheWay(in_));
}

TEST_F(AdmitTest, NoPartition) {
  EXPECT_EQ(Ask({1, 2}).reason, Refusal::kNoPartition);
  table_.partitions[3].complete = false;
  EXPECT_EQ(Ask({1, 3}).reason, Refusal::kNoPartition) << "one GPU of it can't be told";
}

TEST_F(AdmitTest, EverythingInTheWayIsInvolved) {
  Activate({1});  // 1,2,3,4 of nobody
  Add(1, {5, 6, 7, 8});
  Add(2, {2});  // overlaps the foreign partition only
  (void)Ask({1, 3});
  EXPECT_EQ(Involved(in_), (ModuleSet{1, 2, 3, 4}));
  EXPECT_TRUE(SomethingInTheWay(in_));
}

TEST_F(AdmitTest, WhatOverlapsIsReleasedOnlyIfAllIsFree) {
  Add(1, {1, 2, 3, 4});
  Activate({1});
  EXPECT_THAT(Ask({1, 3}).release_first, ElementsAre(1u));
  const Admission held = Ask({1, 3}, {4});
  EXPECT_EQ(held.what, What::kWait) << "also a member that is not asked for";
  EXPECT_EQ(held.held, ModuleSet{4});
}

TEST_F(AdmitTest, AnOwnerThatCantBeAskedIsNoNo) {
  Add(1, {1, 3});
  SetOwner(1, {"pod", "a"});
  EXPECT_EQ(Ask({1, 3}).reason, Refusal::kOwnerUnknown);
  EXPECT_EQ(Ask({1, 3}, {}, {{"a", Possession::kHas}}).reason, Refusal::kOwned);
  EXPECT_EQ(Ask({1, 3}, {}, {{"a", Possession::kHasNot}}).what, What::kAgain);
}

TEST_F(AdmitTest, WhoeverKubeletListsIsAskedToo) {
  listing_.known = true;
  listing_.entries.push_back({{"pod", "b"}, {3}, {3}, {}});
  listing_.modules = {3};
  EXPECT_EQ(Ask({1, 3}, {}, {{"b", Possession::kHas}}).reason, Refusal::kOwned);
  EXPECT_EQ(Ask({1, 3}, {}, {{"b", Possession::kHasNot}}).what, What::kBegin);
}

TEST_F(AdmitTest, AnUnknownOutcomeBlocksWhatItMightUndo) {
  Add(1, {1, 3}, State::kActivating);
  in_.uncertain = in_.unsettled = {1, 3};
  EXPECT_EQ(Ask({1, 3}).reason, Refusal::kUncertain) << "it might outlive the next release";
  EXPECT_EQ(Ask({1, 2, 3, 4}).reason, Refusal::kUncertain);
  ledger_.Remove(1);
  Add(2, {1, 3}, State::kReleasing);
  EXPECT_EQ(Ask({1, 3}).reason, Refusal::kUncertain) << "a late deactivation is not";
}

TEST_F(AdmitTest, ASetThatIsBeingReleasedBeginsAnew) {
  Add(1, {1, 3}, State::kReleasing);
  Activate({3});
  const Admission a = Ask({1, 3});
  EXPECT_EQ(a.what, What::kBegin);
  EXPECT_THAT(a.release_first, ElementsAre(1u));
}

TEST_F(AdmitTest, ForeignExactIsAdoptedAndOverlappingDeactivated) {
  Activate({3});
  EXPECT_EQ(Ask({1, 3}).what, What::kAdopt);
  const Admission a = Ask({1});
  EXPECT_EQ(a.what, What::kBegin);
  ASSERT_EQ(a.deactivate_first.size(), 1u);
  EXPECT_EQ(a.deactivate_first[0]->id, 3);
  table_.partitions[3].complete = false;
  EXPECT_EQ(Ask({1}).reason, Refusal::kForeign);
}

TEST_F(AdmitTest, ATenancyInsideAForeignPartitionEndsBeforeThatIsDeactivated) {
  Add(1, {1});
  Activate({3});
  const Admission a = Ask({1});
  EXPECT_EQ(a.what, What::kBegin);
  EXPECT_THAT(a.release_first, ElementsAre(1u));
  EXPECT_EQ(a.deactivate_first.size(), 1u);
}

TEST_F(AdmitTest, ALostPartitionInUseRefusesOnlySeveralGpus) {
  in_.lost = {1, 3};
  EXPECT_EQ(Ask({1, 2, 3, 4}).reason, Refusal::kDirty);
  EXPECT_EQ(Ask({1}).what, What::kBegin);
}

TEST_F(AdmitTest, TheSameClaimIsGrantedAgainWhoeverHoldsIt) {
  Add(1, {1, 3});
  const Owner claim{"claim", "uid"};
  SetOwner(1, claim, true);
  in_.owner = &claim;
  EXPECT_EQ(Ask({1, 3}, {1, 3}).what, What::kAgain);
  EXPECT_EQ(Ask({1}).reason, Refusal::kOwned) << "another set of the same claim";
  const Owner other{"claim", "other"};
  in_.owner = &other;
  EXPECT_EQ(Ask({1, 3}).reason, Refusal::kOwned);
}

// Whatever is decided, carrying it out leaves one active partition on these modules, and takes
// nothing from anybody who has it.
RC_GTEST_PROP(AdmitProperty, AYesTakesNothingFromAnybody, ()) {
  const auto pick = [](int n) {
    return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0, n));
  };
  fabric::FabricList list = testing::H100();
  for (auto& p : list.partitions) p.active = pick(4) == 0;
  const fabric::PartitionTable table = fabric::MakeTable(list, fabric::ModuleMap());
  Ledger ledger;
  for (int i = 1; i <= pick(5); ++i) {
    TenancyRecord record;
    record.id = static_cast<std::uint64_t>(i);
    record.state =
        *rc::gen::element(State::kPlanned, State::kActivating, State::kActive, State::kReleasing);
    record.modules = table.partitions[static_cast<size_t>(pick(15))].modules;
    if (pick(2) == 0) record.owner = Owner{"pod", std::to_string(pick(3))};
    record.until_released = pick(5) == 0;
    (void)ledger.Restore(record);
  }
  Listing listing;
  listing.known = true;
  for (int i = 0; i < pick(3); ++i) {
    const ModuleSet modules = table.partitions[static_cast<size_t>(pick(15))].modules;
    listing.entries.push_back({{"pod", std::to_string(pick(3))}, modules, modules, {}});
    listing.modules = listing.sure = listing.modules | modules;
  }
  AdmitInput in;
  in.ledger = &ledger;
  in.table = &table;
  in.listing = &listing;
  in.modules = table.partitions[static_cast<size_t>(pick(15))].modules;
  for (const TenancyRecord& r : ledger.records()) {
    if (pick(4) == 0) in.uncertain = in.uncertain | r.modules;
    if (pick(8) == 0) in.unsettled = in.unsettled | r.modules;
  }
  in.unsettled = in.unsettled | in.uncertain;
  ModuleSet held;
  for (int m = 1; m <= 8; ++m) {
    if (pick(10) == 0) held.Insert(m);
  }
  Claimants claimants = ClaimantsOf(in, Involved(in));
  std::map<std::string, Possession> answers;
  for (Claimant& c : claimants) {
    c.answer = pick(4) == 0 ? Possession::kHas
                            : (pick(4) == 0 ? Possession::kUnknown : Possession::kHasNot);
    answers[c.owner->key] = c.answer;
  }
  const Admission a = Admit(in, claimants, held);
  RC_CLASSIFY(a.what != What::kRefuse, "granted");
  if (a.what == What::kRefuse || a.what == What::kWait) return;

  RC_ASSERT(a.partition->modules == in.modules);
  ModuleSet touched = in.modules;
  for (const std::uint64_t id : a.release_first) {
    RC_ASSERT(!ledger.Find(id)->until_released);
    touched = touched | ledger.Find(id)->modules;
  }
  for (const fabric::Partition* p : a.deactivate_first) touched = touched | p->modules;
  RC_ASSERT(!touched.Overlaps(held));
  for (const TenancyRecord& r : ledger.records()) {
    if (!r.modules.Overlaps(touched)) continue;
    if (r.owner) RC_ASSERT(answers.at(r.owner->key) == Possession::kHasNot);
    const bool released =
        std::find(a.release_first.begin(), a.release_first.end(), r.id) != a.release_first.end();
    if (r.modules.Overlaps(in.modules))
      RC_ASSERT(released || (a.what == What::kAgain && a.tenancy == r.id));
    for (const fabric::Partition* p : a.deactivate_first)
      RC_ASSERT(released || !r.modules.Overlaps(p->modules));
    RC_ASSERT(!r.modules.Overlaps(in.uncertain));
    RC_ASSERT(r.modules == in.modules || !r.modules.Overlaps(in.unsettled));
  }
  for (const Listing::Entry& e : listing.entries) {
    if (e.modules.Overlaps(touched)) RC_ASSERT(answers.at(e.owner.key) == Possession::kHasNot);
  }
  // The only active partition left on them is their own.
  for (const fabric::Partition& p : table.partitions) {
    if (!p.active || !p.modules.Overlaps(in.modules) || p.modules == in.modules) continue;
    const TenancyRecord* own = ledger.FindExact(p.modules);
    const bool ends = own != nullptr
                          ? std::find(a.release_first.begin(), a.release_first.end(), own->id) !=
                                a.release_first.end()
                          : std::find(a.deactivate_first.begin(), a.deactivate_first.end(), &p) !=
                                a.deactivate_first.end();
    RC_ASSERT(ends);
  }
}

}  // namespace
}  // namespace switchyard::tenancy
