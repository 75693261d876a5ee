// SPDX-License-Identifier: Apache-2.0
// What the reconciler may never decide, whatever the views say. Views are drawn at random, most of
// them contradictory.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <stdlib.h>

#include "tenancy/holdings.h"
#include "tenancy/reconcile.h"
#include "tenancy/testing/fakes.h"

namespace switchyard::tenancy {
namespace {

// RC_PARAMS="seed=..." repeats a failure.
[[maybe_unused]] const int kRuns = ::setenv("RC_PARAMS", "max_success=500", /*overwrite=*/0);

using fabric::ModuleSet;
using State = TenancyState;

constexpr BootId kNow{2, 2};

// 0 to n - 1, whatever the size that rapidcheck is at.
int Pick(int n) { return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0, n)); }

// Everything a ReconcileInput borrows.
struct Views {
  Ledger ledger;
  std::vector<Watch> watches;
  fabric::PartitionTable table;
  Listing listing;
  ReconcileInput in;
};

ModuleSet SomeModules() {
  ModuleSet modules;
  for (int m = 1; m <= 8; ++m) {
    if (Pick(4) == 0) modules.Insert(m);
  }
  return modules;
}

absl::Duration SomeTime() { return absl::Seconds(Pick(200)); }

void Draw(Views& v) {
  fabric::FabricList list = testing::H100();
  for (auto& p : list.partitions) p.active = Pick(3) == 0;
  v.table = fabric::MakeTable(list, fabric::ModuleMap());
  const int count = Pick(6);
  for (int i = 1; i <= count; ++i) {
    TenancyRecord record;
    record.id = static_cast<std::uint64_t>(i);
    record.state =
        *rc::gen::element(State::kPlanned, State::kActivating, State::kActive, State::kReleasing);
    record.modules = v.table.partitions[static_cast<size_t>(Pick(15))].modules;
    if (Pick(8) == 0) record.modules = ModuleSet{9};  // in no table
    record.until_released = Pick(4) == 0;
    record.boot = *rc::gen::element(BootId{}, BootId{1, 1}, kNow);
    if (!v.ledger.Restore(record).ok()) continue;
    Watch watch;
    watch.id = record.id;
    watch.granted_at = SomeTime();
    if (Pick(2) == 0) watch.unused_since = SomeTime();
    if (Pick(3) == 0) watch.uncertain_since = SomeTime();
    watch.abandoned = Pick(4) == 0;
    v.watches.push_back(watch);
  }
  v.listing.known = Pick(5) != 0;
  v.listing.whole = Pick(4) != 0;
  v.listing.read_started = SomeTime();
  if (v.listing.known) {
    for (int i = 0; i < Pick(3); ++i) {
      const ModuleSet modules = SomeModules();
      v.listing.entries.push_back({{"pod", std::to_string(i)}, modules, modules, {}});
      v.listing.modules = v.listing.sure = v.listing.modules | modules;
    }
  }
  v.in.ledger = &v.ledger;
  v.in.watches = v.watches;
  v.in.table = Pick(8) == 0 ? nullptr : &v.table;
  v.in.fabric_up = v.in.table != nullptr && Pick(5) != 0;
  v.in.fabric_read = SomeTime();
  v.in.listing = &v.listing;
  v.in.looked = Pick(4) == 0 ? SomeModules() : ModuleSet::FirstN(16);
  v.in.held = SomeModules() & v.in.looked;
  v.in.boot = kNow;
  v.in.grace = absl::Seconds(Pick(90));
  v.in.settle = absl::Seconds(15);
  v.in.reactivate_at_start = Pick(2) == 0;
}

// In words of the issue, not of the code: nobody has it, by both views, and that is known.
bool NobodyHasIt(const Views& v, const TenancyRecord& record, const Watch& watch) {
  return v.listing.known && v.listing.whole &&
         v.listing.read_started >= watch.granted_at + kGrantSettles &&
         !v.listing.modules.Overlaps(record.modules) && v.in.looked.ContainsAll(record.modules) &&
         !v.in.held.Overlaps(record.modules);
}

RC_GTEST_PROP(ReconcileProperty, NothingThatMayBeHeldIsTouched, ()) {
  Views v;
  Draw(v);
  for (const Decision& d : Reconcile(v.in)) {
    if (d.act != Act::kRelease && d.act != Act::kReactivate) continue;
    const TenancyRecord& record = *v.ledger.Find(d.tenancy);
    RC_ASSERT(v.in.looked.ContainsAll(record.modules));
    RC_ASSERT(!v.in.held.Overlaps(record.modules));
    RC_ASSERT(v.in.fabric_up);
  }
}

RC_GTEST_PROP(ReconcileProperty, AnActiveTenancyEndsOnlyByTwoViewsForTheGrace, ()) {
  Views v;
  Draw(v);
  for (const Decision& d : Reconcile(v.in)) {
    const TenancyRecord* record = v.ledger.Find(d.tenancy);
    if (record == nullptr || record->state != State::kActive) continue;
    if (d.act != Act::kRelease && d.act != Act::kForget) continue;
    const Watch& watch = *std::find_if(v.watches.begin(), v.watches.end(),
                                       [&](const Watch& w) { return w.id == record->id; });
    if (d.why == Why::kAbandoned) {
      RC_ASSERT(watch.abandoned && !v.listing.modules.Overlaps(record->modules));
      continue;
    }
    RC_ASSERT(NobodyHasIt(v, *record, watch));
    RC_ASSERT(watch.unused_since.has_value());
    RC_ASSERT(v.listing.read_started - *watch.unused_since > v.in.grace);
    RC_ASSERT(!record->until_released);
  }
}

RC_GTEST_PROP(ReconcileProperty, WhatAListThatIsNotWholeLacksIsNotUnused, ()) {
  Views v;
  Draw(v);
  for (const Decision& d : Reconcile(v.in)) {
    if (!v.listing.whole) RC_ASSERT(!d.unused && d.why != Why::kGrace);
    if (d.why == Why::kPodsUnknown) RC_ASSERT(!v.listing.whole && d.act == Act::kKeep);
  }
}

RC_GTEST_PROP(ReconcileProperty, AnUnknownOutcomeIsWaitedFor, ()) {
  Views v;
  Draw(v);
  for (const Decision& d : Reconcile(v.in)) {
    const TenancyRecord* record = v.ledger.Find(d.tenancy);
    if (record == nullptr || (d.act != Act::kForget && d.act != Act::kReactivate)) continue;
    if (record->state != State::kActivating && record->state != State::kReleasing) continue;
    const Watch& watch = *std::find_if(v.watches.begin(), v.watches.end(),
                                       [&](const Watch& w) { return w.id == record->id; });
    RC_ASSERT(!watch.uncertain_since || v.in.fabric_read - *watch.uncertain_since > v.in.settle);
  }
}

RC_GTEST_PROP(ReconcileProperty, OnlyWhatIsActiveIsConfirmedAndAdopted, ()) {
  Views v;
  Draw(v);
  for (const Decision& d : Reconcile(v.in)) {
    if (d.act == Act::kConfirm) RC_ASSERT(d.partition != nullptr && d.partition->active);
    if (d.act != Act::kAdopt) continue;
    RC_ASSERT(d.tenancy == 0u && d.partition->active && d.owner != nullptr);
    RC_ASSERT(d.owner->modules.ContainsAll(d.partition->modules));
    RC_ASSERT(!v.ledger.modules().Overlaps(d.partition->modules));
  }
}

RC_GTEST_PROP(ReconcileProperty, WithoutFabricManagersWordNothingIsChanged, ()) {
  Views v;
  Draw(v);
  v.in.fabric_up = false;
  for (const Decision& d : Reconcile(v.in)) {
    if (d.tenancy == 0) {
      RC_ASSERT(d.act == Act::kReport);
    } else if (v.ledger.Find(d.tenancy)->state == State::kPlanned) {
      RC_ASSERT(d.act == Act::kForget);
    } else {
      RC_ASSERT(d.act == Act::kKeep);
    }
  }
}

RC_GTEST_PROP(ReconcileProperty, EveryTenancyAndEveryForeignPartitionIsJudgedOnce, ()) {
  Views v;
  Draw(v);
  size_t foreign = 0;
  if (v.in.table != nullptr) {
    for (const fabric::Partition& p : v.table.partitions)
      foreign += p.active && v.ledger.FindExact(p.modules) == nullptr ? 1 : 0;
  }
  RC_ASSERT(Reconcile(v.in).size() == v.ledger.records().size() + foreign);
}

}  // namespace
}  // namespace switchyard::tenancy
