// SPDX-License-Identifier: Apache-2.0
#include "tenancy/admit.h"

#include <algorithm>

#include "tenancy/partition_sets.h"

namespace switchyard::tenancy {
namespace {

using fabric::ModuleSet;
using fabric::Partition;
using What = Admission::What;

// With the members of foreign partitions that overlap it.
ModuleSet WithForeign(const AdmitInput& in) {
  ModuleSet modules = in.modules;
  for (const Partition& p : in.table->partitions) {
    if (p.modules.Overlaps(in.modules) && IsForeign(*in.ledger, p)) modules = modules | p.modules;
  }
  return modules;
}

bool SameOwner(const AdmitInput& in, const TenancyRecord& record) {
  return in.owner != nullptr && record.owner && *record.owner == *in.owner &&
         record.modules == in.modules;
}

// A tenancy that can be granted again once nobody has it.
bool MayBeReused(const TenancyRecord& record) {
  return record.state == TenancyState::kActive || record.state == TenancyState::kActivating;
}

Admission Refuse(Admission admission, Refusal reason) {
  admission.what = What::kRefuse;
  admission.reason = reason;
  return admission;
}

}  // namespace

ModuleSet Involved(const AdmitInput& in) {
  const ModuleSet asked = WithForeign(in);
  ModuleSet involved = asked;
  for (const TenancyRecord& record : in.ledger->records()) {
    if (record.modules.Overlaps(asked)) involved = involved | record.modules;
  }
  return involved;
}

bool SomethingInTheWay(const AdmitInput& in) {
  return in.ledger->modules().Overlaps(in.modules) || in.listing->modules.Overlaps(in.modules) ||
         std::any_of(
             in.table->partitions.begin(), in.table->partitions.end(),
             [&](const Partition& p) { return p.active && p.modules.Overlaps(in.modules); });
}

Claimants ClaimantsOf(const AdmitInput& in, ModuleSet involved) {
  Claimants claimants;
  const auto add = [&](const Owner& owner, ModuleSet modules, std::uint64_t tenancy) {
    if (in.owner != nullptr && owner == *in.owner) return;
    for (Claimant& known : claimants) {
      if (*known.owner != owner) continue;
      known.modules = known.modules | modules;
      return;
    }
    claimants.push_back({&owner, modules, tenancy, Possession::kUnknown});
  };
  for (const TenancyRecord& record : in.ledger->records()) {
    if (record.owner && record.modules.Overlaps(involved))
      add(*record.owner, record.modules, record.id);
  }
  for (const Listing::Entry& entry : in.listing->entries) {
    if (entry.modules.Overlaps(involved)) add(entry.owner, entry.modules & involved, 0);
  }
  return claimants;
}

Admission Admit(const AdmitInput& in, const Claimants& claimants, ModuleSet held) {
  Admission admission;
  admission.partition = FindExact(*in.table, in.modules);
  if (admission.partition == nullptr) return Refuse(admission, Refusal::kNoPartition);

  if (in.modules.Overlaps(in.doubtful)) return Refuse(admission, Refusal::kUncertain);
  const ModuleSet asked = WithForeign(in);
  const TenancyRecord* again = nullptr;
  for (const TenancyRecord& record : in.ledger->records()) {
    if (!record.modules.Overlaps(asked)) continue;
    admission.blocker = &record;
    // kubelet did not hand out its devices again, so nothing says that its pod has gone.
    if (!record.modules.Overlaps(in.modules)) return Refuse(admission, Refusal::kOwned);
    const bool exact = record.modules == in.modules;
    if (exact && MayBeReused(record)) again = &record;
    // What may still happen might undo, stand in the way of, or outlive what is done now.
    if (record.modules.Overlaps(exact ? in.uncertain : in.unsettled))
      return Refuse(admission, Refusal::kUncertain);
    if (SameOwner(in, record) && MayBeReused(record)) {
      Admission idempotent;
      idempotent.what = What::kAgain;
      idempotent.partition = admission.partition;
      idempotent.tenancy = record.id;
      return idempotent;
    }
    // A claim has its devices until it gives them back, whatever kubelet says.
    if (record.until_released) return Refuse(admission, Refusal::kOwned);
    if (!exact || !MayBeReused(record)) admission.release_first.push_back(record.id);
  }
  admission.blocker = nullptr;

  for (const Claimant& claimant : claimants) {
    admission.claimant = &claimant;
    if (claimant.answer == Possession::kHas) return Refuse(admission, Refusal::kOwned);
    if (claimant.answer == Possession::kUnknown) return Refuse(admission, Refusal::kOwnerUnknown);
  }
  admission.claimant = nullptr;

  for (const Partition& p : in.table->partitions) {
    if (!p.modules.Overlaps(in.modules) || !IsForeign(*in.ledger, p)) continue;
    if (!p.complete) {  // some of its GPUs can't be told, so neither who has them
      admission.foreign = &p;
      return Refuse(admission, Refusal::kForeign);
    }
    if (&p != admission.partition) admission.deactivate_first.push_back(&p);
  }
  // Nothing that overlaps a tenancy is deactivated, so one that would be granted again ends first.
  if (again != nullptr && !admission.deactivate_first.empty()) {
    admission.release_first.push_back(again->id);
    again = nullptr;
  }

  if (in.modules.size() > 1 && in.modules.Overlaps(in.lost))
    return Refuse(admission, Refusal::kDirty);
  admission.held = held & Involved(in);
  if (!admission.held.empty()) {
    admission.what = What::kWait;
    admission.reason = Refusal::kHeld;
    return admission;
  }
  if (again != nullptr) {
    admission.what = What::kAgain;
    admission.tenancy = again->id;
  } else {
    admission.what = IsForeign(*in.ledger, *admission.partition) ? What::kAdopt : What::kBegin;
  }
  return admission;
}

}  // namespace switchyard::tenancy
