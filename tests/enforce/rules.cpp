// SPDX-License-Identifier: Apache-2.0
#include "tests/enforce/rules.h"

#include <algorithm>

namespace switchyard::enforce_sim {

using fabric::ModuleSet;
using tenancy::TenancyRecord;
using State = tenancy::TenancyState;

Rules::Rules(Stage& stage, Hardware& hardware, FabricModel& fabric, JournalModel& journal,
             KubeletModel& kubelet)
    : stage_(stage), hardware_(hardware), fabric_(fabric), journal_(journal), kubelet_(kubelet) {
  last_had_.fill(-1'000'000'000);
  NothingTold();
  hardware_.told = [this](ModuleSet asked, ModuleSet held) { ToldOfProcesses(asked, held); };
  fabric_.before_activate = [this](const Row& row) { OnActivate(row); };
  fabric_.before_deactivate = [this](const Row& row) { OnDeactivate(row); };
  fabric_.before_late = [this](const Row& row, bool active) { OnLate(row, active); };
  fabric_.before_list = [this](std::span<const int> ids) { OnList(ids); };
  journal_.on_erase = [this](std::uint64_t id) { OnErase(id); };
  journal_.on_write = [this](const TenancyRecord& record) { OnWrite(record); };
}

void Rules::Begin(Cause cause, int pod) {
  cause_ = cause;
  pod_ = pod;
  before_.clear();
  for (const auto& [id, record] : journal_.records) {
    // What its writer does not know of says nothing of what it began.
    if (!journal_.doubted.contains(id)) before_.emplace_hint(before_.end(), id, record.state);
  }
}

void Rules::Touch() {
  const ModuleSet live = kubelet_.Live();
  for (int m = fabric::kMinModule; m <= fabric::kMaxModule; ++m) {
    if (live.Contains(m)) last_had_[static_cast<size_t>(m)] = stage_.now();
  }
}

std::int64_t Rules::IdleMs(ModuleSet modules) const {
  std::int64_t idle = stage_.now() - last_had_[0];
  for (int m = fabric::kMinModule; m <= fabric::kMaxModule; ++m) {
    if (modules.Contains(m))
      idle = std::min(idle, stage_.now() - last_had_[static_cast<size_t>(m)]);
  }
  return idle;
}

bool Rules::Unseen(const Row& row) const {
  if (row.changed_by != FabricModel::By::kOutsider || enforcer == nullptr) return false;
  const std::shared_ptr<const fabric::PartitionTable> table = enforcer->Table();
  const fabric::Partition* believed = table == nullptr ? nullptr : table->Find(row.id);
  return believed == nullptr || believed->modules != row.modules || believed->active != row.active;
}

bool Rules::Renumbered(const Row& row) const {
  const std::shared_ptr<const fabric::PartitionTable> table =
      enforcer == nullptr ? nullptr : enforcer->Table();
  const fabric::Partition* believed = table == nullptr ? nullptr : table->Find(row.id);
  return believed == nullptr || believed->modules != row.modules;
}

bool Rules::Believed(const Row& row) const {
  const std::shared_ptr<const fabric::PartitionTable> table =
      enforcer == nullptr ? nullptr : enforcer->Table();
  const fabric::Partition* believed = table == nullptr ? nullptr : table->Find(row.id);
  return believed != nullptr && believed->active;
}

// The table has changed, and the Enforcer has not read it yet.
bool Rules::BelievesIn(ModuleSet modules) const {
  const std::shared_ptr<const fabric::PartitionTable> table =
      enforcer == nullptr ? nullptr : enforcer->Table();
  return table != nullptr && std::any_of(table->partitions.begin(), table->partitions.end(),
                                         [modules](const fabric::Partition& p) {
                                           return p.modules == modules && p.active;
                                         });
}

std::string Rules::Who(ModuleSet modules) const {
  std::string text;
  for (const Pod& pod : kubelet_.pods) {
    const ModuleSet live = kubelet_.LiveOf(pod);
    if (live.Overlaps(modules))
      absl::StrAppend(&text, text.empty() ? "" : ", ", "pod ", pod.uid, " (", pod.name, ") has ",
                      live.ToString());
  }
  return text.empty() ? "nobody has it" : text;
}

// ---- what is asked of the fabric ---------------------------------------------------------------

void Rules::OnActivate(const Row& row) {
  if (Renumbered(row)) return fabric_.Excuse();
  const TenancyRecord* record = journal_.FindExact(row.modules);
  if (record == nullptr || record->state != State::kActivating)
    stage_.Break(Rule::kNotJournaled, "partition ", row.id, " (", row.modules,
                 ") is activated, and the journal has ",
                 record == nullptr ? "nothing" : tenancy::TenancyStateName(record->state));
  for (const Row& other : fabric_.rows()) {
    if (!other.active || other.id == row.id || !other.modules.Overlaps(row.modules)) continue;
    if (Unseen(other)) continue;
    stage_.Break(Rule::kJoined, "partition ", row.id, " (", row.modules, ") is activated while ",
                 other.id, " (", other.modules, ") is active; ", Who(other.modules));
  }
}

void Rules::OnDeactivate(const Row& row) {
  if (Renumbered(row)) return fabric_.Excuse();
  if (hardware_.Held().Overlaps(row.modules))
    stage_.Break(Rule::kTakenWhileHeld, "partition ", row.id, " (", row.modules,
                 ") is deactivated, modules ", hardware_.Held() & row.modules, " are held; ",
                 Who(row.modules));
  const TenancyRecord* record = journal_.FindExact(row.modules);
  if (record != nullptr && record->state == State::kReleasing) return OnRelease(*record);
  const bool overlapped =
      std::any_of(journal_.records.begin(), journal_.records.end(),
                  [&](const auto& entry) { return entry.second.modules.Overlaps(row.modules); });
  if (overlapped || !journal_.IsForeign(row.modules, boot))
    stage_.Break(Rule::kNotJournaled, "partition ", row.id, " (", row.modules,
                 ") is deactivated, and the journal has neither a release of it nor found it");
  for (const Pod& pod : kubelet_.pods) {
    if (pod.uid != pod_ && told_.contains(pod.uid) && kubelet_.LiveOf(pod).Overlaps(row.modules))
      stage_.Break(Rule::kReleasedEarly, "partition ", row.id, " (", row.modules,
                   ") is deactivated; ", Who(row.modules));
  }
}

void Rules::OnLate(const Row& row, bool active) {
  const bool held = std::any_of(
      hardware_.processes.begin(), hardware_.processes.end(), [&](const Process& process) {
        return process.pod != 0 && process.holds.Overlaps(row.modules);  // anybody may open later
      });
  if (active || !held) return;
  stage_.Break(Rule::kTakenWhileHeld, "partition ", row.id, " (", row.modules,
               ") is deactivated by a late call, and held; ", Who(row.modules));
}

// ---- what leaves the journal -------------------------------------------------------------------

// Invariant 6, of a tenancy that is being taken away.
void Rules::OnRelease(const TenancyRecord& record) {
  for (Pod& pod : kubelet_.pods) {
    if (!kubelet_.LiveOf(pod).Overlaps(record.modules) || pod.uid == pod_) continue;
    if (cause_ == Cause::kForce && hardware_.HeldBy(pod.uid).empty()) {
      stage_.Tell("  taken from pod ", pod.uid, " by force");
      pod.revoked = true;
      continue;
    }
    stage_.Break(Rule::kReleasedEarly, "tenancy ", record.id, " (", record.modules,
                 ") is released; ", Who(record.modules));
  }
  if (cause_ != Cause::kReconcile && cause_ != Cause::kRelease) return;
  const auto began = before_.find(record.id);
  if (began == before_.end() || undone.contains(record.id)) return;
  // Once active: by what the journal said before this operation.
  if (began->second != State::kActive &&
      !(began->second == State::kActivating && record.boot.known()))
    return;
  std::int64_t agreed = 0;
  for (int m = fabric::kMinModule; m <= fabric::kMaxModule; ++m) {
    if (!record.modules.Contains(m)) continue;
    const auto i = static_cast<size_t>(m);
    agreed = std::max({agreed, free_by_processes_[i], free_by_pods_[i]});
  }
  if (agreed != kNever && last_list_ - agreed >= grace_ms) return;
  stage_.Break(Rule::kReleasedEarly, "tenancy ", record.id, " (", record.modules, ") is released, ",
               agreed == kNever
                   ? std::string("and the views do not agree")
                   : absl::StrCat("and the views have agreed for ", last_list_ - agreed, " ms"));
}

void Rules::ToldOfProcesses(ModuleSet asked, ModuleSet held) {
  if (cause_ == Cause::kDryRun) return;  // it moves no timer
  stage_.Tell("  processes: of ", asked, " may be held ", held);
  for (int m = fabric::kMinModule; m <= fabric::kMaxModule; ++m) {
    std::int64_t& since = free_by_processes_[static_cast<size_t>(m)];
    if (held.Contains(m)) {
      since = kNever;
    } else if (asked.Contains(m) && since == kNever) {
      since = stage_.now();
    }
  }
}

void Rules::ToldOfPods(std::map<int, ModuleSet> pods, std::int64_t began, bool whole) {
  ModuleSet listed;
  for (const auto& [uid, modules] : pods) listed = listed | modules;
  stage_.Tell("  kubelet: listed ", listed, whole ? "" : ", and need not know its pods");
  told_ = std::move(pods);
  last_list_ = began;
  for (int m = fabric::kMinModule; m <= fabric::kMaxModule; ++m) {
    std::int64_t& since = free_by_pods_[static_cast<size_t>(m)];
    since = listed.Contains(m) || !whole ? kNever : std::min(since, began);
  }
}

void Rules::NothingTold() {
  free_by_processes_.fill(kNever);
  free_by_pods_.fill(kNever);
  told_.clear();
  list_read = false;
}

void Rules::OnErase(std::uint64_t id) {
  const auto found = journal_.records.find(id);
  if (found == journal_.records.end() || journal_.unconfirmed.contains(id)) return;
  const TenancyRecord& record = found->second;
  const Row* row = fabric_.FindExact(record.modules);
  if (row != nullptr && row->active && !Unseen(*row))
    stage_.Break(Rule::kForgottenEarly, "tenancy ", id, " leaves the journal, and its partition ",
                 row->id, " (", row->modules, ") is active");
  for (const FabricModel::Late& late : fabric_.late()) {
    if (late.modules != record.modules || late.orphan) continue;
    stage_.Break(Rule::kForgottenEarly, "tenancy ", id, " (", record.modules,
                 ") leaves the journal, and a call for its partition is outstanding");
  }
  // A record that was written in error, of a partition that was found: it stays as it is.
  if (row == nullptr || !row->active) OnRelease(record);
}

void Rules::OnWrite(const TenancyRecord& record) {
  for (const auto& [id, other] : journal_.records) {
    if (id != record.id && other.modules.Overlaps(record.modules))
      stage_.Break(Rule::kTwoTenants, "modules ", other.modules & record.modules,
                   " are in tenancies ", id, " and ", record.id);
  }
  const auto before = journal_.records.find(record.id);
  if (before == journal_.records.end()) {
    if (record.adopted) OnAdopt(record);
  } else if (record.state == State::kReleasing && before->second.state != State::kReleasing) {
    OnRelease(record);
  }
}

// One pod has all of it, by kubelet's last word.
void Rules::OnAdopt(const TenancyRecord& record) {
  if (cause_ != Cause::kReconcile) return;
  for (const auto& [uid, modules] : told_) {
    if (modules.Overlaps(record.modules) && !modules.ContainsAll(record.modules))
      stage_.Break(Rule::kTwoTenants, "partition with modules ", record.modules,
                   " is adopted, and pod ", uid, " has ", modules);
  }
}

void Rules::TakeOver() {
  for (const auto& [id, record] : journal_.records) {
    Row* const row = fabric_.FindExact(record.modules);
    if (row != nullptr && row->active && row->told && Believed(*row) &&
        !journal_.unconfirmed.contains(id))
      row->found = false;
  }
}

void Rules::Orphan(ModuleSet modules) {
  for (const Row& row : fabric_.rows()) {
    if (row.active && row.modules.Overlaps(modules)) fabric_.Find(row.id)->found = true;
  }
  fabric_.OrphanLate(modules);
}

void Rules::Revoke(ModuleSet modules) {
  for (Pod& pod : kubelet_.pods) {
    if (pod.modules().Overlaps(modules) && hardware_.HeldBy(pod.uid).empty()) pod.revoked = true;
  }
}

ModuleSet Rules::FoundModules() const {
  ModuleSet modules;
  for (const Row& row : fabric_.rows()) {
    if (row.active && row.found) modules = modules | row.modules;
  }
  return modules;
}

// ---- what was granted --------------------------------------------------------------------------

void Rules::AfterGrant(const Pod& pod, ModuleSet modules, const tenancy::Acquired& acquired) {
  for (const Pod& other : kubelet_.pods) {
    if (other.uid == pod.uid || !kubelet_.LiveOf(other).Overlaps(modules)) continue;
    stage_.Break(Rule::kTwoTenants, "modules ", modules, " are granted to pod ", pod.uid, "; ",
                 Who(modules));
  }
  for (const Process& process : hardware_.processes) {
    // A claim's own request again is answered as before, whoever else is in the way of its VM.
    if (process.pod == pod.uid || (pod.claim && process.pod == 0 && !acquired.begun) ||
        !process.holds.Overlaps(modules))
      continue;
    stage_.Break(Rule::kTwoTenants, "modules ", modules, " are granted to pod ", pod.uid,
                 ", and process ", process.pid, " holds ", process.holds);
  }
  const auto record = journal_.records.find(acquired.tenancy);
  if (record == journal_.records.end() || record->second.modules != modules ||
      record->second.state != State::kActive) {
    stage_.Break(Rule::kNotJournaled, "tenancy ", acquired.tenancy, " (", modules,
                 ") is granted, and the journal has ",
                 record == journal_.records.end()
                     ? "nothing"
                     : tenancy::TenancyStateName(record->second.state));
  }
  const Row* row = fabric_.FindExact(modules);
  if (row == nullptr ? !BelievesIn(modules) : !row->active && !Unseen(*row))
    stage_.Break(Rule::kNotGranted, "modules ", modules, " are granted, and ",
                 row == nullptr ? "no partition" : "their partition is not active");
  for (const Row& other : fabric_.rows()) {
    if (!other.active || &other == row || !other.modules.Overlaps(modules) || Unseen(other))
      continue;
    stage_.Break(Rule::kJoined, "modules ", modules, " are granted, and partition ", other.id, " (",
                 other.modules, ") is active");
  }
  for (const FabricModel::Late& late : fabric_.late()) {
    if (!late.modules.Overlaps(modules) || (late.active && late.modules == modules) || late.orphan)
      continue;
    stage_.Break(Rule::kJoined, "modules ", modules, " are granted, and a call to ",
                 late.active ? "activate " : "deactivate ", late.modules, " is outstanding");
  }
}

void Rules::AfterReadmission(const Pod& pod) {
  for (const Container& container : pod.mains) {
    const TenancyRecord* record = journal_.FindExact(container.modules);
    if (record == nullptr) continue;
    for (const tenancy::TenancyDevice& then : record->devices) {
      const Gpu* gpu = hardware_.Find(then.address);
      if (gpu == nullptr || !gpu->present || SameNodes(then, hardware_.NodesOf(*gpu))) continue;
      stage_.Break(Rule::kWrongDevice, "pod ", pod.uid, " is admitted again with ",
                   then.address.ToString(), ", which has other nodes than when it was granted");
    }
  }
}

void Rules::AfterStart(const Pod& pod, const Container& container) {
  for (const tenancy::TenancyDevice& then : container.granted) {
    const Gpu* gpu = hardware_.Find(then.address);
    if (gpu != nullptr && gpu->present && SameNodes(then, hardware_.NodesOf(*gpu))) continue;
    // The journal that knew is lost.
    const TenancyRecord* record = journal_.FindExact(container.modules);
    if (record != nullptr && record->adopted) continue;
    stage_.Break(Rule::kWrongDevice, "pod ", pod.uid, " may start with ", then.address.ToString(),
                 ", and has the nodes of another device");
  }
  for (const auto& [id, record] : journal_.records) {
    if (!record.modules.ContainsAll(container.modules)) continue;
    const Row* row = fabric_.FindExact(record.modules);
    if (row == nullptr ? BelievesIn(record.modules) : row->active || Unseen(*row)) return;
  }
  stage_.Break(Rule::kWrongDevice, "pod ", pod.uid, " may start with modules ", container.modules,
               ", which are in no active partition of one tenancy");
}

void Rules::Always() {
  TakeOver();
  for (const Row& row : fabric_.rows()) {
    if (!row.active || row.found) continue;
    for (const Pod& pod : kubelet_.pods) {
      const ModuleSet live = kubelet_.LiveOf(pod);
      if (!live.Overlaps(row.modules)) continue;
      const bool its = std::any_of(pod.mains.begin(), pod.mains.end(),
                                   [&](const Container& c) { return c.modules == row.modules; }) ||
                       pod.init.modules == row.modules;
      // One that was found may be a part of what the pod has.
      const TenancyRecord* record = journal_.FindExact(row.modules);
      if (record != nullptr && record->adopted && pod.modules().ContainsAll(row.modules)) continue;
      if (!its)
        stage_.Break(Rule::kJoined, "partition ", row.id, " (", row.modules,
                     ") is active, and not pod ", pod.uid, "'s, which has ", live);
    }
  }
}

}  // namespace switchyard::enforce_sim
