// SPDX-License-Identifier: Apache-2.0
#include "tenancy/reconcile.h"

#include <algorithm>

#include "tenancy/holdings.h"
#include "tenancy/partition_sets.h"

namespace switchyard::tenancy {
namespace {

using fabric::ModuleSet;
using fabric::Partition;
using State = TenancyState;

const Watch& WatchOf(const ReconcileInput& in, std::uint64_t id) {
  static const Watch none;
  const auto found = std::find_if(in.watches.begin(), in.watches.end(),
                                  [id](const Watch& w) { return w.id == id; });
  return found == in.watches.end() ? none : *found;
}

// What both views say of one tenancy.
class Use {
 public:
  Use(const ReconcileInput& in, const TenancyRecord& record, const Watch& watch)
      : listing_spoke_(in.listing->known &&
                       in.listing->read_started >= watch.granted_at + kGrantSettles),
        whole_(in.listing->whole),
        listed_(in.listing->modules.Overlaps(record.modules)),
        surely_listed_(in.listing->sure.Overlaps(record.modules)),
        looked_(in.looked.ContainsAll(record.modules)),
        held_(in.held.Overlaps(record.modules)) {}

  [[nodiscard]] bool listed() const { return listed_; }
  [[nodiscard]] bool surely_listed() const { return surely_listed_; }
  [[nodiscard]] bool held() const { return held_; }
  // Nobody holds it, and that is known.
  [[nodiscard]] bool free() const { return looked_ && !held_; }
  [[nodiscard]] bool unused() const { return listing_spoke_ && whole_ && !listed_ && free(); }
  [[nodiscard]] bool unproved() const { return listing_spoke_ && !whole_ && !listed_ && free(); }
  [[nodiscard]] bool orphaned() const { return listing_spoke_ && whole_ && !listed_ && held_; }

 private:
  bool listing_spoke_;
  bool whole_;
  bool listed_;
  bool surely_listed_;
  bool looked_;
  bool held_;
};

// The two views agreed from `unused_since` to the last listing.
bool GraceIsOver(const ReconcileInput& in, const Watch& watch) {
  return watch.unused_since && in.listing->read_started - *watch.unused_since > in.grace;
}

// Nothing is outstanding, by a list whose reading began late enough.
bool Settled(const ReconcileInput& in, const Watch& watch) {
  return !watch.uncertain_since || in.fabric_read - *watch.uncertain_since > in.settle;
}

Decision With(Decision decision, Act act, Why why) {
  decision.act = act;
  decision.why = why;
  return decision;
}

// What is left of a tenancy that should go: an active partition is deactivated first.
Act End(const Decision& decision) {
  return decision.partition != nullptr && decision.partition->active ? Act::kRelease : Act::kForget;
}

Decision EndOr(const ReconcileInput& in, const Watch& watch, Decision decision, Act otherwise,
               Why why) {
  if (decision.unused && GraceIsOver(in, watch)) return With(decision, End(decision), Why::kUnused);
  if (decision.unproved && otherwise == Act::kKeep) why = Why::kPodsUnknown;
  return With(decision, otherwise, why);
}

Why WhyKept(const Use& use) {
  if (use.listed()) return Why::kInUse;
  if (use.held()) return Why::kHeld;
  if (use.unproved()) return Why::kPodsUnknown;
  return use.unused() ? Why::kGrace : Why::kUnjudged;
}

bool WasActive(const TenancyRecord& record) { return record.boot.known(); }

// Wanted by a consumer that starts before PreStartContainer is called, and possible.
bool WantedNow(const ReconcileInput& in, const TenancyRecord& record, const Watch& watch,
               const Use& use, const Decision& d) {
  if (d.partition == nullptr || Obstructing(*in.table, *d.partition) != nullptr) return false;
  return in.reactivate_at_start && WasActive(record) && record.boot != in.boot && use.free() &&
         !watch.other_nodes;
}

Decision OfActivating(const ReconcileInput& in, const TenancyRecord& record, const Watch& watch,
                      const Use& use, Decision d) {
  if (d.partition != nullptr && d.partition->active) {
    if (watch.abandoned && use.free() && !use.listed())
      return With(d, Act::kRelease, Why::kAbandoned);
    return With(d, Act::kConfirm, Why::kActive);
  }
  if (!Settled(in, watch)) return With(d, Act::kKeep, Why::kUncertain);
  if (WantedNow(in, record, watch, use, d)) return With(d, Act::kReactivate, Why::kRebooted);
  // One that was active before may have containers that wait for it to be active again.
  if (WasActive(record) && !watch.abandoned)
    return EndOr(in, watch, d, Act::kKeep, record.boot == in.boot ? Why::kLost : Why::kRebooted);
  if (use.listed() || !use.free()) return With(d, Act::kKeep, WhyKept(use));
  return With(d, Act::kForget, Why::kNeverBegan);
}

Decision OfReleasing(const ReconcileInput& in, const Watch& watch, const Use& use, Decision d) {
  // Before that it may still be carried out, and end whatever was begun in its place.
  if (!Settled(in, watch)) return With(d, Act::kKeep, Why::kUncertain);
  if (d.partition == nullptr || !d.partition->active)
    return With(d, Act::kForget, Why::kUnfinished);
  // Granted again after all, and that could not be written: called off.
  if (use.surely_listed()) return With(d, Act::kConfirm, Why::kInUse);
  if (use.listed()) return With(d, Act::kKeep, Why::kInUse);
  if (!use.free()) return With(d, Act::kReport, Why::kHeld);
  return With(d, Act::kRelease, Why::kUnfinished);
}

Decision OfActive(const ReconcileInput& in, const TenancyRecord& record, const Watch& watch,
                  const Use& use, Decision d) {
  if (d.partition == nullptr) return EndOr(in, watch, d, Act::kReport, Why::kVanished);
  if (d.partition->active) {
    if (record.boot != in.boot || record.lost) return With(d, Act::kConfirm, Why::kActive);
    if (watch.abandoned && use.free() && !use.listed())
      return With(d, Act::kRelease, Why::kAbandoned);
    const Act keep = use.orphaned() ? Act::kReport : Act::kKeep;
    return EndOr(in, watch, d, keep, WhyKept(use));
  }
  if (record.boot == in.boot) return EndOr(in, watch, d, Act::kReport, Why::kLost);
  // Not before it had its chance: kubelet lists nothing of it while its devices are Unhealthy.
  if (WantedNow(in, record, watch, use, d)) return With(d, Act::kReactivate, Why::kRebooted);
  return EndOr(in, watch, d, watch.other_nodes ? Act::kReport : Act::kKeep, Why::kRebooted);
}

Decision Judge(const ReconcileInput& in, const TenancyRecord& record) {
  const Watch& watch = WatchOf(in, record.id);
  const Use use(in, record, watch);
  Decision d;
  d.tenancy = record.id;
  d.partition = in.table == nullptr ? nullptr : FindExact(*in.table, record.modules);
  d.owner = use.listed() ? in.listing->OwnerOfAll(record.modules) : nullptr;
  // A claim is its owner's until it gives it back.
  d.unused = use.unused() && !record.until_released;
  d.unproved = use.unproved() && !record.until_released;
  d.orphaned = use.orphaned() && !record.until_released;
  if (record.state == State::kPlanned) return With(d, Act::kForget, Why::kNeverBegan);
  // Without Fabric Manager's word of now nothing can be confirmed, and nothing may be changed.
  if (!in.fabric_up || in.table == nullptr) return With(d, Act::kKeep, WhyKept(use));
  switch (record.state) {
    case State::kActivating:
      return OfActivating(in, record, watch, use, d);
    case State::kReleasing:
      return OfReleasing(in, watch, use, d);
    default:
      return OfActive(in, record, watch, use, d);
  }
}

Decision JudgeForeign(const ReconcileInput& in, const Partition& partition) {
  Decision d;
  d.partition = &partition;
  d.owner = in.listing->known ? in.listing->OwnerOfAll(partition.modules) : nullptr;
  d.unused = in.listing->known && in.listing->whole &&
             !in.listing->modules.Overlaps(partition.modules) &&
             in.looked.ContainsAll(partition.modules) && !in.held.Overlaps(partition.modules);
  const bool adoptable = d.owner != nullptr && partition.complete && in.fabric_up &&
                         !in.ledger->modules().Overlaps(partition.modules);
  return With(d, adoptable ? Act::kAdopt : Act::kReport, Why::kForeign);
}

}  // namespace

ModuleSet WorthLooking(const ReconcileInput& in) {
  ModuleSet modules;
  for (const TenancyRecord& record : in.ledger->records()) {
    const bool listed = in.listing->known && in.listing->modules.Overlaps(record.modules);
    if (!listed || record.state != State::kActive || record.boot != in.boot)
      modules = modules | record.modules;
  }
  if (in.table == nullptr) return modules;
  for (const Partition& p : in.table->partitions) {
    if (IsForeign(*in.ledger, p)) modules = modules | p.modules;
  }
  return modules;
}

Decisions Reconcile(const ReconcileInput& in) {
  Decisions decisions;
  for (const TenancyRecord& record : in.ledger->records()) decisions.push_back(Judge(in, record));
  if (in.table == nullptr) return decisions;
  for (const Partition& p : in.table->partitions) {
    if (IsForeign(*in.ledger, p)) decisions.push_back(JudgeForeign(in, p));
  }
  return decisions;
}

ModuleSet LostModules(const Ledger& ledger, const fabric::PartitionTable& table,
                      const BootId& boot) {
  ModuleSet lost;
  for (const TenancyRecord& record : ledger.records()) {
    if (record.state != State::kActive || record.boot != boot) continue;
    const Partition* partition = FindExact(table, record.modules);
    if (partition == nullptr || !partition->active) lost = lost | record.modules;
  }
  return lost;
}

absl::string_view ActName(Act act) {
  switch (act) {
    case Act::kKeep:
      return "keep";
    case Act::kConfirm:
      return "confirm";
    case Act::kRelease:
      return "release";
    case Act::kForget:
      return "forget";
    case Act::kReactivate:
      return "reactivate";
    case Act::kAdopt:
      return "adopt";
    case Act::kReport:
      return "report";
  }
  return "unknown";
}

absl::string_view WhyText(Why why) {
  switch (why) {
    case Why::kInUse:
      return "kubelet lists it";
    case Why::kHeld:
      return "kubelet does not list it, but it may be held open";
    case Why::kGrace:
      return "nobody has it by both views, not yet for the grace time";
    case Why::kUnjudged:
      return "kubelet or the processes were not asked yet";
    case Why::kPodsUnknown:
      return "neither kubelet nor a process has it, but kubelet has not shown yet that "
             "it knows its pods";
    case Why::kUnused:
      return "neither kubelet nor a process has had it for longer than the grace time";
    case Why::kAbandoned:
      return "its request was refused, so nobody was given it";
    case Why::kNeverBegan:
      return "its partition was never activated";
    case Why::kUncertain:
      return "the outcome of the last change is not known yet";
    case Why::kUnfinished:
      return "its release was begun and not finished";
    case Why::kActive:
      return "its partition is active";
    case Why::kRebooted:
      return "its partition was activated before the node's reboot";
    case Why::kLost:
      return "Fabric Manager has its partition inactive without having been asked to";
    case Why::kVanished:
      return "no partition in Fabric Manager's table has its modules any more";
    case Why::kForeign:
      return "active, and of no tenancy";
  }
  return "unknown";
}

}  // namespace switchyard::tenancy
