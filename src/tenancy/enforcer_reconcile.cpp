// SPDX-License-Identifier: Apache-2.0
// The reconciler's decisions, carried out.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tenancy/enforcer_impl.h"
#include "tenancy/partition_sets.h"

namespace switchyard::tenancy {
namespace {

using fabric::ModuleSet;

constexpr size_t kMaxReported = 256;

}  // namespace

ReconcileInput Enforcer::Impl::MakeInput(const Held& held, ModuleSet looked) const {
  ReconcileInput in;
  in.ledger = &ledger_;
  in.watches = watches_;
  in.table = table_.get();
  in.fabric_up = up_;
  in.fabric_read = list_began_;
  in.listing = &listing_;
  in.held = held.modules;
  in.looked = looked;
  in.boot = options_.boot;
  in.grace = options_.grace;
  in.settle = options_.fabric_timeout;
  in.reactivate_at_start = options_.reactivate_at_start;
  return in;
}

void Enforcer::Impl::Reconcile() {
  const Step step(*this, absl::InfiniteDuration());
  if (!journal_.ok() || !options_.boot.known()) return;
  if (!EraseStrays().ok()) return;
  for (const std::uint64_t id : std::vector<std::uint64_t>(unsaved_)) {
    if (const TenancyRecord* record = ledger_.Find(id)) (void)Save(*record);
  }
  // Decisions point into this table, which a change replaces.
  const std::shared_ptr<const fabric::PartitionTable> table = table_;
  ModuleSet looked = WorthLooking(MakeInput({}, {}));
  for (const ModuleSet lost : lost_foreign_) looked = looked | lost;
  Held held;
  if (!looked.empty()) held = Look(looked);
  DropUsedLost(held, looked);
  held_unlisted_ = held.modules - listing_.modules;

  for (const TenancyRecord& record : ledger_.records()) {
    WatchOf(record.id).other_nodes =
        std::any_of(record.devices.begin(), record.devices.end(), [&](const TenancyDevice& then) {
          const Board::Device* now = board_.Find(then.address);
          return now == nullptr || !SameNodes(then, now->nodes);
        });
  }
  const std::uint64_t generation = generation_;
  const Decisions decisions = tenancy::Reconcile(MakeInput(held, looked));
  TrackForeign(decisions);
  TrackPodsUnknown(decisions);
  const absl::Duration now = parts_.clock->Monotonic();
  for (const Decision& decision : decisions) {
    if (decision.tenancy != 0) {
      Watch& watch = WatchOf(decision.tenancy);
      watch.orphaned = decision.orphaned;
      if (!decision.unused) watch.unused_since.reset();
      if (decision.unused && !watch.unused_since) watch.unused_since = now;
      // An activation that the list shows has happened; anything else may still until it is over.
      const TenancyRecord* record = ledger_.Find(decision.tenancy);
      const bool happened = record != nullptr && Happened(*record, watch);
      if (watch.uncertain_since && up_ &&
          (happened || list_began_ - *watch.uncertain_since > options_.fabric_timeout)) {
        watch.uncertain_since.reset();
      }
    }
    ModuleSet free = looked - held.modules;
    // Changes take seconds; what was seen before them is not what is.
    if (generation != generation_) {
      free = {};
      if (IsOutdated(decision)) continue;
    }
    if (CarryOut(decision, free)) ++actions_[ActName(decision.act)];
  }
  (void)SaveForeign();  // reported there

  const ModuleSet dirty = DirtyModules();
  if (!dirty.empty() && !was_dirty_) {
    Tell("fabric_dirty", Severity::kError,
         absl::StrCat("Fabric Manager lost active partitions of modules ", dirty.ToString(),
                      " while they are in use (a cold restart?): what runs is left alone, new "
                      "requests for them are refused; end those virtual machines, the fabric is "
                      "clean once the last is gone"),
         nullptr);
  } else if (dirty.empty() && was_dirty_) {
    Tell("fabric_clean", Severity::kInfo, "no lost partition is in use any more", nullptr);
  }
  was_dirty_ = !dirty.empty();
}

// A change of this pass brought a list that says otherwise of its partition: decided again.
bool Enforcer::Impl::IsOutdated(const Decision& decision) const {
  const TenancyRecord* record = ledger_.Find(decision.tenancy);
  if (record == nullptr && decision.partition == nullptr) return false;
  const fabric::Partition* now =
      FindExact(*table_, record != nullptr ? record->modules : decision.partition->modules);
  const bool was_active = decision.partition != nullptr && decision.partition->active;
  return was_active != (now != nullptr && now->active);
}

void Enforcer::Impl::TrackForeign(const Decisions& decisions) {
  for (const Decision& decision : decisions) {
    if (decision.tenancy != 0) continue;
    const ModuleSet modules = decision.partition->modules;
    const auto found = std::find_if(foreign_since_.begin(), foreign_since_.end(),
                                    [&](const auto& entry) { return entry.first == modules; });
    if (!decision.unused && found != foreign_since_.end()) foreign_since_.erase(found);
    if (decision.unused && found == foreign_since_.end())
      foreign_since_.emplace_back(modules, parts_.clock->Now());
  }
}

void Enforcer::Impl::TrackPodsUnknown(const Decisions& decisions) {
  const auto kept = std::count_if(decisions.begin(), decisions.end(), [](const Decision& d) {
    return d.unproved && (d.act == Act::kKeep || d.act == Act::kReport);
  });
  if (listing_.whole && std::exchange(told_pods_unknown_, false))
    Tell("assignments_complete", Severity::kInfo, "kubelet has named a pod", nullptr);
  if (kept == 0) return pods_unknown_since_.reset();
  const absl::Duration now = parts_.clock->Monotonic();
  if (!pods_unknown_since_) pods_unknown_since_ = now;
  if (told_pods_unknown_ || now - *pods_unknown_since_ <= options_.grace) return;
  told_pods_unknown_ = true;
  Tell("assignments_incomplete", Severity::kWarning,
       absl::StrCat(
           "kubelet has listed no pod but static ones since it started, so it may not know "
           "its pods yet, and what it does not list is kept (",
           kept,
           " tenancies; switchyard reconcile --dry-run names them); see that it reaches "
           "the API server; if this node really has no pods: switchyard release ID --force"),
       nullptr);
}

bool Enforcer::Impl::CarryOut(const Decision& decision, ModuleSet free) {
  const TenancyRecord* record = ledger_.Find(decision.tenancy);
  if (decision.tenancy != 0 && record == nullptr) return false;
  switch (decision.act) {
    case Act::kKeep:
      return false;
    case Act::kReport:
      ReportOnce(decision);
      if (decision.why == Why::kLost && record != nullptr) RememberLost(*record);
      return false;
    case Act::kConfirm: {
      TenancyRecord confirmed = *record;
      confirmed.state = TenancyState::kActive;
      confirmed.lost = false;
      confirmed.boot = options_.boot;
      confirmed.partition = decision.partition->id;
      WatchOf(decision.tenancy).uncertain_since.reset();
      return Save(std::move(confirmed)).ok();  // else reported there, and decided again
    }
    case Act::kForget:
      if (decision.why != Why::kUnfinished) {
        Held held;
        AskDevices(record->modules, held);
        record = ledger_.Find(decision.tenancy);
        if (record == nullptr || held.modules.Overlaps(record->modules))
          return false;  // decided again
      }
      return Forget(decision.tenancy, WhyText(decision.why)).ok();
    case Act::kRelease:
    case Act::kReactivate: {
      if (!up_) return false;  // since it was decided: decided again
      const ModuleSet modules = record->modules;
      Held held;
      if (!free.ContainsAll(modules)) held = Look(modules);
      AskDevices(modules, held);
      if (held.modules.Overlaps(modules)) return false;  // decided again
      if (decision.act == Act::kRelease)
        return End(decision.tenancy, modules, WhyText(decision.why)).ok();
      if (!Establish(*record).ok()) return false;
      Tell("reactivated", Severity::kInfo, "activated again after the node's reboot",
           ledger_.Find(decision.tenancy));
      return true;
    }
    case Act::kAdopt:
      return Adopt(decision);
  }
  return false;
}

// The next agent must not tell a Fabric Manager that restarts warm that it is active.
void Enforcer::Impl::RememberLost(TenancyRecord record) {
  if (record.lost || record.state != TenancyState::kActive || record.boot != options_.boot) return;
  record.lost = true;
  (void)Save(std::move(record));  // reported there, and decided again
}

bool Enforcer::Impl::Adopt(const Decision& decision) {
  TenancyRecord record;
  record.id = NewId();
  record.state = TenancyState::kActive;
  record.adopted = true;
  record.owner = decision.owner->owner;
  record.partition = decision.partition->id;
  record.modules = decision.partition->modules;
  record.boot = options_.boot;
  record.begun = parts_.clock->Now();
  ModuleSet missing = record.modules;
  for (const Board::Device& device : board_.devices) {
    if (!record.modules.ContainsAll(device.modules) || device.modules.empty()) continue;
    record.devices.push_back(device.nodes);
    missing = missing - device.modules;
  }
  // A device that is off the bus has no nodes to remember, and its container needs them.
  if (!missing.empty()) return false;
  const TenancyRecord adopted = record;
  if (!Save(std::move(record)).ok()) return false;  // reported there, and decided again
  Tell("adopted", Severity::kInfo,
       "an active partition that was found, and kubelet lists its members in one pod", &adopted);
  return true;
}

void Enforcer::Impl::ReportOnce(const Decision& decision) {
  const std::uint64_t key = decision.tenancy;
  if (key == 0) {  // foreign: SaveForeign told when it came
    return;
  }
  const std::pair<std::uint64_t, Why> report(key, decision.why);
  if (std::find(reported_.begin(), reported_.end(), report) != reported_.end()) return;
  if (reported_.size() >= kMaxReported) reported_.erase(reported_.begin());
  reported_.push_back(report);
  absl::string_view name = "tenancy_kept";
  Severity severity = Severity::kWarning;
  std::string message(WhyText(decision.why));
  switch (decision.why) {
    case Why::kHeld:
      name = "tenancy_orphaned";
      absl::StrAppend(
          &message, "; it is released once that process has gone (switchyard tenancies names it)");
      break;
    case Why::kVanished:
      name = "partition_vanished";
      severity = Severity::kError;
      absl::StrAppend(&message, "; it is left alone until nobody has it");
      break;
    case Why::kLost:
      name = "partition_lost";
      severity = Severity::kError;
      absl::StrAppend(&message, "; its guest may have no NVLink, end that virtual machine");
      break;
    case Why::kRebooted:
      absl::StrAppend(&message, ", and its devices have other nodes now; its pod must be deleted");
      break;
    default:
      break;
  }
  Tell(name, severity, std::move(message), ledger_.Find(decision.tenancy));
}

void Enforcer::Impl::DropUsedLost(const Held& held, ModuleSet looked) {
  std::erase_if(lost_foreign_, [&](const ModuleSet lost) {
    return looked.ContainsAll(lost) && !held.modules.Overlaps(lost) && listing_.known &&
           listing_.whole && !listing_.modules.Overlaps(lost);
  });
}

std::vector<PlannedAction> Enforcer::Impl::PlanReconcile() {
  const Step step(*this, absl::InfiniteDuration());
  std::vector<PlannedAction> plan;
  if (!journal_.ok()) {
    plan.push_back({"keep", std::nullopt, std::nullopt, {}, std::string(journal_.message())});
    return plan;
  }
  const ModuleSet looked = WorthLooking(MakeInput({}, {}));
  Held held;
  if (!looked.empty()) held = Look(looked);
  for (const Decision& decision : tenancy::Reconcile(MakeInput(held, looked))) {
    PlannedAction action;
    action.action = ActName(decision.act);
    if (decision.tenancy != 0) action.tenancy = decision.tenancy;
    if (decision.partition != nullptr) action.partition = decision.partition->id;
    if (const TenancyRecord* record = ledger_.Find(decision.tenancy)) {
      action.modules = record->modules;
    } else if (decision.partition != nullptr) {
      action.modules = decision.partition->modules;
    }
    action.why = std::string(WhyText(decision.why));
    if (decision.owner != nullptr)
      absl::StrAppend(&action.why, " (", decision.owner->owner.kind, " ", decision.owner->owner.key,
                      ")");
    plan.push_back(std::move(action));
  }
  return plan;
}

}  // namespace switchyard::tenancy
