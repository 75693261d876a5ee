// SPDX-License-Identifier: Apache-2.0
// What was seen, and the facade.
#include "tenancy/enforcer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "fabric/restart_kind.h"
#include "tenancy/enforcer_impl.h"
#include "tenancy/partition_sets.h"

namespace switchyard::tenancy {

using fabric::ModuleSet;

Status Enforcer::Impl::Load() {
  const Step step(*this, absl::InfiniteDuration());
  if (parts_.journal == nullptr) {
    journal_ = absl::FailedPreconditionError(
        "the state can't be opened, so no tenancy can be remembered; look at the state folder");
    return journal_;
  }
  Result<Journal::Content> content = absl::InternalError("not read");
  {
    const Outside outside(*this);
    content = parts_.journal->Load();
  }
  journal_ = Annotate(content.status(), "the journal can't be read");
  RETURN_IF_ERROR(journal_);
  const auto lost = [this](absl::string_view what) {
    journal_lost_ = true;
    Tell("journal_lost", Severity::kError,
         absl::StrCat(what,
                      "; it is left in the journal and not used: what is active, listed and "
                      "held decides instead (switchyard journal verify)"),
         nullptr);
  };
  for (const std::string& what : content->lost) lost(what);
  const absl::Duration now = parts_.clock->Monotonic();
  for (TenancyRecord& record : content->records) {
    Watch watch{.id = record.id, .granted_at = now};
    if (record.state == TenancyState::kActivating || record.state == TenancyState::kReleasing) {
      watch.uncertain_since = now;
      watch.unanswered = 1;
    }
    last_id_ = std::max(last_id_, record.id);
    if (const Status restored = ledger_.Restore(std::move(record)); restored.ok()) {
      watches_.push_back(watch);
    } else {
      lost(restored.message());
    }
  }
  draining_ = content->draining;
  if (content->foreign_boot == options_.boot) foreign_ = std::move(content->foreign);
  for (const ModuleSet modules : foreign_) doubtful_.emplace_back(modules, now);
  return OkStatus();
}

void Enforcer::Impl::ObserveBoard(Board board, std::shared_ptr<const fabric::ModuleMap> map) {
  const Step step(*this, absl::InfiniteDuration());
  board_ = std::move(board);
  map_ = std::move(map);
  RemakeTable();
  CompareMap();
  if (listing_.known)
    listing_ = MakeListing(assigned_, listing_.read_started, board_, *map_, ledger_);
}

// The map speaks otherwise than when a live tenancy's GPUs were granted.
void Enforcer::Impl::CompareMap() {
  std::vector<std::string> differ;
  for (const TenancyRecord& record : ledger_.records()) {
    for (const TenancyDevice& device : record.devices) {
      const Board::Device* now = board_.Find(device.address);
      if (now == nullptr || (now->mapped && record.modules.ContainsAll(now->modules))) continue;
      differ.push_back(absl::StrCat(
          device.address.ToString(), " (",
          now->modules.empty() ? "no module id" : absl::StrCat("module ", now->modules.ToString()),
          " now; tenancy ", record.id, " has it as one of ", record.modules.ToString(), ")"));
    }
  }
  if (!differ.empty() && differ != map_differs_) {
    Tell("module_map_differs", Severity::kError,
         absl::StrCat("the module map contradicts what was granted: ", absl::StrJoin(differ, ", "),
                      "; these tenancies are kept as they were granted, mend the map (switchyard "
                      "mapping)"),
         nullptr);
  }
  map_differs_ = std::move(differ);
}

void Enforcer::Impl::ObserveRememberedList(const fabric::FabricList& list) {
  const Step step(*this, absl::InfiniteDuration());
  if (list_) return;
  list_ = list;
  ever_up_ = true;
  RemakeTable();
}

void Enforcer::Impl::ObserveFabric(const Result<fabric::FabricList>& list,
                                   std::uint64_t generation) {
  const Step step(*this, absl::InfiniteDuration());
  if (generation != generation_ || absl::IsCancelled(list.status())) return;
  if (!list.ok()) {
    bool waits = journal_.ok() && parts_.restart_is_warm &&
                 fabric::MayWaitForActiveList(list.status(), ever_up_);
    if (waits) {
      const Outside outside(*this);
      waits = parts_.restart_is_warm();
    }
    if (waits) return SendActive();
    up_ = false;
    fabric_ = list.status();
    return;
  }
  if (!up_ || !list_ || *list_ != *list) {
    TakeList(*list, read_began_);
  } else {
    list_began_ = read_began_;
  }
  if (!journal_.ok()) return;
  for (const ModuleSet modules : foreign_) {
    const fabric::Partition* partition = FindExact(*table_, modules);
    if (partition != nullptr && partition->active) continue;
    if (ledger_.FindExact(modules) != nullptr) continue;
    if (std::find(lost_foreign_.begin(), lost_foreign_.end(), modules) == lost_foreign_.end())
      lost_foreign_.push_back(modules);
  }
  (void)SaveForeign();  // reported there
}

void Enforcer::Impl::ObserveAssignments(AssignmentView view, absl::Duration read_started) {
  const Step step(*this, absl::InfiniteDuration());
  assigned_ = std::move(view);
  listing_ = MakeListing(assigned_, read_started, board_, *map_, ledger_);
  Contradict(listing_.whole ? listing_.modules : ledger_.modules());
  if (!journal_.ok()) return;
  std::vector<TenancyRecord> learned;
  for (const TenancyRecord& record : ledger_.records()) {
    if (record.until_released || record.state != TenancyState::kActive) continue;
    const Watch* watch = FindWatch(record.id);
    // A view from before the grant speaks of whoever was there before.
    if (watch == nullptr || read_started < watch->granted_at) continue;
    const Listing::Entry* entry = listing_.OwnerOfAll(record.modules);
    if (entry == nullptr || record.owner == entry->owner) continue;
    learned.push_back(record);
    learned.back().owner = entry->owner;
  }
  for (TenancyRecord& record : learned) {
    const bool changed = ledger_.Find(record.id)->owner.has_value();
    const TenancyRecord told = record;
    if (!Save(std::move(record)).ok()) {
      // Reported there, and written later: what is known protects it all the same.
      if (IsUnsaved(told.id)) ledger_.Put(told);
      continue;
    }
    Tell(changed ? "owner_changed" : "owner_learned",
         changed ? Severity::kWarning : Severity::kDebug,
         changed ? "kubelet lists the devices under another owner, without having asked for them "
                   "again"
                 : "kubelet lists the devices",
         &told);
  }
}

// ---- facade ------------------------------------------------------------------------------------

Enforcer::Enforcer(EnforcerOptions options, EnforcerParts parts)
    : impl_(std::make_unique<Impl>(options, std::move(parts))) {
  impl_->assignments_ = impl_->parts_.assignments;
}
Enforcer::~Enforcer() = default;

Status Enforcer::Load() { return impl_->Load(); }
void Enforcer::SetAssignmentSource(AssignmentSource* source) {
  const Impl::Step step(*impl_, absl::InfiniteDuration());
  impl_->assignments_ = source;
}
void Enforcer::ObserveBoard(Board board, std::shared_ptr<const fabric::ModuleMap> map) {
  impl_->ObserveBoard(std::move(board), std::move(map));
}
std::uint64_t Enforcer::FabricGeneration() {
  const absl::MutexLock lock(&impl_->memory_);
  impl_->read_began_ = impl_->parts_.clock->Monotonic();
  return impl_->generation_;
}
void Enforcer::ObserveFabric(const Result<fabric::FabricList>& list, std::uint64_t generation) {
  impl_->ObserveFabric(list, generation);
}
void Enforcer::ObserveRememberedList(const fabric::FabricList& list) {
  impl_->ObserveRememberedList(list);
}
void Enforcer::ObserveAssignments(AssignmentView view, absl::Duration read_started) {
  impl_->ObserveAssignments(std::move(view), read_started);
}
Result<Acquired> Enforcer::Acquire(const TenancyRequest& request) {
  return impl_->Acquire(request);
}
void Enforcer::Undo(const Acquired& acquired) { impl_->Undo(acquired); }
Status Enforcer::ReleaseOwner(const Owner& owner) { return impl_->ReleaseOwner(owner); }
Status Enforcer::ReleaseById(std::uint64_t tenancy, bool force) {
  return impl_->ReleaseById(tenancy, force);
}
Status Enforcer::PreStart(std::span<const TenancyDevice> devices) {
  return impl_->PreStart(devices);
}
Status Enforcer::Drain(bool on) { return impl_->Drain(on); }
void Enforcer::Reconcile() { impl_->Reconcile(); }
std::vector<PlannedAction> Enforcer::PlanReconcile() { return impl_->PlanReconcile(); }
BlockedDevices Enforcer::Blocked() const { return impl_->Blocked(); }
fabric::ModuleSet Enforcer::BusyModules() const {
  const absl::MutexLock lock(&impl_->memory_);
  return impl_->ledger_.modules();
}
fabric::ModuleSet Enforcer::ToAvoid() const {
  const absl::MutexLock lock(&impl_->memory_);
  return impl_->held_unlisted_ | impl_->UncertainModules() | impl_->DoubtfulModules();
}
std::shared_ptr<const fabric::PartitionTable> Enforcer::Table() const {
  const absl::MutexLock lock(&impl_->memory_);
  return impl_->table_;
}
Status Enforcer::FabricStatus() const {
  const absl::MutexLock lock(&impl_->memory_);
  return impl_->up_ ? OkStatus() : impl_->fabric_;
}
Status Enforcer::JournalStatus() const {
  const absl::MutexLock lock(&impl_->memory_);
  if (impl_->journal_.ok() && impl_->journal_failing_)
    return absl::UnavailableError("the journal can't be written; look at the state folder");
  return impl_->journal_;
}
EnforceView Enforcer::View() const { return impl_->View(); }

}  // namespace switchyard::tenancy
