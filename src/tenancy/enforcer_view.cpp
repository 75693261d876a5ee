// SPDX-License-Identifier: Apache-2.0
// What others see: operators, metrics, and kubelet through the devices' health.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tenancy/enforcer_impl.h"
#include "tenancy/holdings.h"
#include "tenancy/partition_sets.h"

namespace switchyard::tenancy {

using fabric::ModuleSet;
using fabric::Partition;

namespace {

// A container that was given `then` opens this device instead: kernel names are given anew at each
// boot.
bool HasNamesOf(const TenancyDevice& now, const TenancyDevice& then) {
  if (then.backend == pci::Backend::kLegacy) return now.iommu_group == then.iommu_group;
  for (const TenancyFunction& function : now.functions) {
    const bool same = std::any_of(then.functions.begin(), then.functions.end(), [&](const auto& f) {
      return !f.cdev.empty() && f.cdev == function.cdev;
    });
    if (same) return true;
  }
  return false;
}

// Why a device of no tenancy can't be granted, whichever it is.
std::string WhyNothing(const std::optional<Refused>& gate, bool journal_failing) {
  if (gate) return std::string(gate->status.message());
  return journal_failing ? "the journal can't be written; look at the state folder" : "";
}

}  // namespace

BlockedDevices Enforcer::Impl::Blocked() {
  const absl::MutexLock lock(&memory_);
  BlockedDevices blocked;
  const std::string nothing = WhyNothing(Gate(), journal_failing_);
  ModuleSet lost;
  for (const ModuleSet modules : lost_foreign_) lost = lost | modules;
  for (const Board::Device& device : board_.devices) {
    if (device.modules.Overlaps(ledger_.modules())) continue;
    if (!nothing.empty()) {
      blocked.emplace(device.address, nothing);
    } else if (device.modules.Overlaps(lost)) {
      blocked.emplace(device.address,
                      "Fabric Manager lost the partition it is used in; end that virtual machine");
    }
  }
  for (const TenancyRecord& record : ledger_.records()) {
    // A container that kubelet starts again from its checkpoint has the names of the last grant.
    // One list without it says nothing: right after a boot kubelet does not know all its pods.
    const bool asleep =
        options_.reactivate_at_start && record.boot.known() && record.boot != options_.boot;
    for (const TenancyDevice& then : record.devices) {
      const Board::Device* now = board_.Find(then.address);
      const bool renamed = now == nullptr || !SameNodes(then, now->nodes);
      // Where PreStartContainer comes too late to see it.
      const bool opened_unseen = renamed && options_.reactivate_at_start;
      for (const Board::Device& other : board_.devices) {
        if (!opened_unseen || other.address == then.address || !HasNamesOf(other.nodes, then))
          continue;
        blocked.emplace(other.address,
                        absl::StrCat("it has the device node that ", then.address.ToString(),
                                     " had when tenancy ", record.id,
                                     " was granted, whose "
                                     "container would open it; its pod must be deleted"));
      }
      if (now == nullptr) continue;
      if (renamed) {
        blocked.emplace(then.address, absl::StrCat("tenancy ", record.id,
                                                   " was granted with other device nodes "
                                                   "than it has now; its pod must be deleted"));
      } else if (asleep) {
        blocked.emplace(then.address, absl::StrCat("tenancy ", record.id,
                                                   " is to be activated again after the reboot"));
      }
    }
  }
  return blocked;
}

EnforceView Enforcer::Impl::View() {
  const absl::MutexLock lock(&memory_);
  EnforceView view;
  const absl::Duration now = parts_.clock->Monotonic();
  for (const TenancyRecord& record : ledger_.records()) {
    TenancyView one{record, std::nullopt, false, false, std::nullopt, false, false};
    if (const Partition* p = table_ ? FindExact(*table_, record.modules) : nullptr) {
      one.partition = p->id;
      one.active = p->active;
    }
    one.listed = listing_.modules.Overlaps(record.modules);
    if (const Watch* watch = FindWatch(record.id)) {
      if (watch->unused_since) one.unused_for = now - *watch->unused_since;
      one.orphaned = watch->orphaned && !one.listed;
      one.uncertain = watch->uncertain_since.has_value();
    }
    view.tenancies.push_back(std::move(one));
  }
  if (table_ != nullptr) {
    for (const Partition& p : table_->partitions) {
      PartitionView one;
      one.id = p.id;
      one.modules = p.modules;
      one.active = p.active;
      one.foreign = IsForeign(ledger_, p);
      const TenancyRecord* own = ledger_.FindExact(p.modules);
      if (own != nullptr && p.complete) one.tenancy = own->id;
      for (const TenancyRecord& record : ledger_.records()) {
        if (&record != own && record.modules.Overlaps(p.modules))
          one.blocked_by_tenancies.push_back(record.id);
      }
      for (const Partition& other : table_->partitions) {
        if (other.id != p.id && IsForeign(ledger_, other) && other.modules.Overlaps(p.modules))
          one.blocked_by_partitions.push_back(other.id);
      }
      const auto since = std::find_if(foreign_since_.begin(), foreign_since_.end(),
                                      [&](const auto& f) { return f.first == p.modules; });
      if (one.foreign && since != foreign_since_.end()) one.stale_since = since->second;
      view.partitions.push_back(std::move(one));
    }
  }
  view.dirty = DirtyModules();
  view.fabric_up = up_;
  if (!up_) view.fabric_problem = std::string(fabric_.message());
  if (!journal_.ok()) {
    view.journal_problem = std::string(journal_.message());
  } else if (journal_failing_) {
    view.journal_problem = "it can't be written";
  }
  view.pods_unknown = listing_.known && !listing_.whole;
  view.draining = draining_;
  for (int i = 0; i < kRefusals; ++i) {
    if (refusals_[static_cast<size_t>(i)] != 0)
      view.refusals.emplace(RefusalName(static_cast<Refusal>(i)),
                            refusals_[static_cast<size_t>(i)]);
  }
  for (const auto& [action, count] : actions_) view.actions.emplace(action, count);
  for (const auto& [failure, count] : failures_) view.fabric_failures.emplace(failure, count);
  view.activations = activations_;
  view.deactivations = deactivations_;
  return view;
}

}  // namespace switchyard::tenancy
