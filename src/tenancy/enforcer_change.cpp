// SPDX-License-Identifier: Apache-2.0
// Changes of ledger and fabric: the journal first, and nothing is believed that the list does not
// show.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tenancy/enforcer_impl.h"
#include "tenancy/partition_sets.h"

namespace switchyard::tenancy {
namespace {

using fabric::ModuleSet;
using fabric::Partition;
using State = TenancyState;

// Failures after which the change has not happened and will not (fabric_control.h).
bool DidNotHappen(const Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kNotFound:
      return true;
    default:
      return false;
  }
}

// Failures that say that Fabric Manager can't be talked to at all.
bool IsDown(const Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kNotFound:
      return true;
    default:
      return false;
  }
}

}  // namespace

// ---- fabric ------------------------------------------------------------------------------------

void Enforcer::Impl::RemakeTable() {
  if (list_)
    table_ = std::make_shared<const fabric::PartitionTable>(fabric::MakeTable(*list_, *map_));
}

void Enforcer::Impl::TakeList(fabric::FabricList list, absl::Duration began) {
  list_began_ = began;
  list_ = std::move(list);
  RemakeTable();
  up_ = true;
  ever_up_ = true;
  list_read_ = true;
  fabric_ = OkStatus();
}

Status Enforcer::Impl::Change(absl::string_view what, const Partition& partition, bool active) {
  const ModuleSet modules = partition.modules;
  const int id = partition.id;
  ++generation_;
  const absl::Duration began = parts_.clock->Monotonic();
  absl::Duration within = options_.fabric_timeout;
  if (by_) within = std::clamp(*by_ - began, absl::Milliseconds(1), within);
  Result<fabric::FabricList> list = absl::InternalError("not asked");
  {
    const Outside outside(*this);
    list = active ? parts_.fabric->Activate(id, within) : parts_.fabric->Deactivate(id, within);
  }
  ++generation_;
  longest_ = std::max(longest_, parts_.clock->Monotonic() - began);
  Status status = list.status();
  if (list.ok()) {
    TakeList(*std::move(list), began);
    const Partition* now = FindExact(*table_, modules);
    if (now != nullptr && now->active == active) {
      ++(active ? activations_ : deactivations_);
      return OkStatus();
    }
    status = absl::UnknownError(
        absl::StrCat("Fabric Manager reports a success, and its list still has the partition ",
                     active ? "inactive" : "active", "; look at Fabric Manager's log"));
  } else if (IsDown(status)) {
    up_ = false;
    fabric_ = status;
  }
  // kInternal is the ledger's word for a mistake of ours.
  if (absl::IsInternal(status) && !fabric::FabricCodeOf(status))
    status = absl::UnknownError(status.message());
  const std::optional<int> code = fabric::FabricCodeOf(status);
  ++failures_[absl::StrCat(active ? "activate " : "deactivate ",
                           code ? absl::StrCat(*code) : absl::StatusCodeToString(status.code()))];
  return Annotate(status,
                  absl::StrCat(what, " partition ", id, " (modules ", modules.ToString(), ")"));
}

void Enforcer::Impl::Asking(std::uint64_t id) {
  Watch& watch = WatchOf(id);
  if (!watch.uncertain_since) watch.unanswered = 0;
  ++watch.unanswered;
  watch.uncertain_since = parts_.clock->Monotonic();
}

void Enforcer::Impl::Answered(std::uint64_t id, const Status& changed) {
  Watch& watch = WatchOf(id);
  if (changed.ok() || DidNotHappen(changed)) --watch.unanswered;
  watch.uncertain_since = parts_.clock->Monotonic();
  if (watch.unanswered == 0) watch.uncertain_since.reset();
}

Result<int> Enforcer::Impl::Establish(TenancyRecord record) {
  const bool is_new = ledger_.Find(record.id) == nullptr;
  const Partition* partition = FindExact(*table_, record.modules);
  if (partition == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        "no partition in Fabric Manager's table has modules ", record.modules.ToString()));
  }
  record.state = State::kActivating;
  record.partition = partition->id;
  const std::uint64_t id = record.id;
  const int partition_id = partition->id;
  RETURN_IF_ERROR(Save(record));
  if (const Status allowed = CheckActivate(ledger_, *table_, id, *partition); !allowed.ok()) {
    Tell("invariant_refused", Severity::kError, std::string(allowed.message()), &record);
    if (is_new) (void)Forget(id, "its activation was refused");
    return allowed;
  }
  Asking(id);
  WatchOf(id).abandoned = is_new;
  const Status changed = Change("activating", *partition, true);
  Answered(id, changed);
  if (!changed.ok()) {
    if (DidNotHappen(changed) && is_new) (void)Forget(id, "its activation failed");
    Tell("activation_failed", Severity::kError, std::string(changed.message()), &record);
    return changed;
  }
  Watch& watch = WatchOf(id);
  watch.abandoned = false;
  watch.unused_since.reset();
  watch.granted_at = parts_.clock->Monotonic();
  std::erase_if(reported_, [id](const auto& r) { return r.first == id; });
  record.state = State::kActive;
  record.lost = false;
  record.boot = options_.boot;
  if (const Status saved = Save(record); !saved.ok()) {
    // Seen active, and not written: nobody is given what a reboot would forget.
    ledger_.Put(record);
    WatchOf(id).abandoned = is_new;
    return saved;
  }
  return partition_id;
}

Status Enforcer::Impl::Forget(std::uint64_t id, absl::string_view why) {
  const TenancyRecord* record = ledger_.Find(id);
  if (record == nullptr) return OkStatus();
  TenancyRecord gone = *record;
  if (gone.state == State::kActive) {
    gone.state = State::kReleasing;
    RETURN_IF_ERROR(Save(gone));
  }
  RETURN_IF_ERROR(Erase(id));
  Tell("released", Severity::kInfo, std::string(why), &gone);
  return OkStatus();
}

Status Enforcer::Impl::End(std::uint64_t id, ModuleSet free, absl::string_view why) {
  const TenancyRecord* found = ledger_.Find(id);
  if (found == nullptr) return OkStatus();
  TenancyRecord record = *found;
  if (table_ == nullptr || !up_) {
    return Annotate(
        fabric_.ok() ? absl::UnavailableError("Fabric Manager was not read yet") : fabric_,
        "nothing can be deactivated now");
  }
  const Partition* partition = FindExact(*table_, record.modules);
  const Watch* watch = FindWatch(id);
  const bool uncertain = watch != nullptr && watch->uncertain_since.has_value();
  if (partition == nullptr || (!partition->active && !uncertain)) return Forget(id, why);

  const Status allowed = free.ContainsAll(record.modules)
                             ? OkStatus()
                             : absl::InternalError(absl::StrCat(
                                   "tenancy ", id, " can't be released: modules ",
                                   (record.modules - free).ToString(), " may be held open"));
  RETURN_IF_ERROR(allowed);
  const absl::Duration began = parts_.clock->Monotonic();
  const auto measure = [&](absl::string_view outcome) {
    parts_.events->Measure({"release", parts_.clock->Monotonic() - began, {{"outcome", outcome}}});
  };
  if (record.state != State::kReleasing || IsUnsaved(id)) {
    record.state = State::kReleasing;
    RETURN_IF_ERROR(Save(record));
  }
  const Status may = CheckDeactivate(ledger_, foreign_, record.modules - free, *partition);
  if (!may.ok()) {
    Tell("invariant_refused", Severity::kError, std::string(may.message()), &record);
    return may;
  }
  Asking(id);
  const Status changed = Change("deactivating", *partition, false);
  Answered(id, changed);
  if (!changed.ok()) {
    Tell("release_failed", Severity::kError, absl::StrCat(changed.message(), "; tried again"),
         &record);
    measure("failed");
    return changed;
  }
  // What was asked before may still happen: it stays releasing until that is over, and the
  // reconciler ends it.
  if (uncertain) return OkStatus();
  RETURN_IF_ERROR(Erase(id));
  Tell("released", Severity::kInfo, std::string(why), &record);
  measure("released");
  return OkStatus();
}

Status Enforcer::Impl::DeactivateForeign(ModuleSet modules, ModuleSet free) {
  // A failed adoption of it may be in the journal.
  RETURN_IF_ERROR(EraseStrays());
  RETURN_IF_ERROR(SaveForeign());
  const Partition* partition = FindExact(*table_, modules);
  if (partition == nullptr || !partition->active) return OkStatus();
  if (!up_) return Annotate(fabric_, "nothing can be deactivated now");
  const Status may = CheckDeactivate(ledger_, foreign_, modules - free, *partition);
  if (!may.ok()) {
    Tell("invariant_refused", Severity::kError, std::string(may.message()), nullptr);
    return may;
  }
  // In doubt until the call has returned.
  std::erase_if(doubtful_, [modules](const auto& doubt) { return doubt.first == modules; });
  doubtful_.emplace_back(modules, parts_.clock->Monotonic());
  const Status changed = Change("deactivating", *partition, false);
  if (changed.ok() || DidNotHappen(changed)) {
    doubtful_.pop_back();
  } else {
    doubtful_.back().second = parts_.clock->Monotonic();
  }
  RETURN_IF_ERROR(changed);
  Tell("foreign_deactivated", Severity::kWarning,
       absl::StrCat("modules ", modules.ToString(),
                    " were an active partition of no tenancy, of nobody by kubelet and by the "
                    "processes, and in the way of a request: deactivated"),
       nullptr);
  return SaveForeign();
}

// ---- small -------------------------------------------------------------------------------------

Watch& Enforcer::Impl::WatchOf(std::uint64_t id) {
  for (Watch& watch : watches_) {
    if (watch.id == id) return watch;
  }
  watches_.push_back({.id = id, .granted_at = parts_.clock->Monotonic()});
  return watches_.back();
}

const Watch* Enforcer::Impl::FindWatch(std::uint64_t id) const {
  for (const Watch& watch : watches_) {
    if (watch.id == id) return &watch;
  }
  return nullptr;
}

// The one activation that was asked for is in the list, so nothing is outstanding.
bool Enforcer::Impl::Happened(const TenancyRecord& record, const Watch& watch) const {
  const Partition* partition = table_ == nullptr ? nullptr : FindExact(*table_, record.modules);
  return watch.unanswered == 1 && record.state == State::kActivating && partition != nullptr &&
         partition->active;
}

bool Enforcer::Impl::IsUncertain(const TenancyRecord& record) const {
  const Watch* watch = FindWatch(record.id);
  return watch != nullptr && watch->uncertain_since && !Happened(record, *watch);
}

ModuleSet Enforcer::Impl::UncertainModules() const {
  ModuleSet modules;
  for (const TenancyRecord& record : ledger_.records()) {
    if (IsUncertain(record)) modules = modules | record.modules;
  }
  return modules;
}

ModuleSet Enforcer::Impl::UnsettledModules() const {
  ModuleSet modules;
  for (const Watch& watch : watches_) {
    const TenancyRecord* record = ledger_.Find(watch.id);
    if (record != nullptr && watch.uncertain_since) modules = modules | record->modules;
  }
  return modules;
}

ModuleSet Enforcer::Impl::DoubtfulModules() const {
  ModuleSet modules;
  for (const auto& [its, since] : doubtful_) {
    const bool over = up_ && list_began_ - since > options_.fabric_timeout;
    if (!over) modules = modules | its;
  }
  return modules;
}

ModuleSet Enforcer::Impl::DirtyModules() const {
  ModuleSet dirty;
  if (table_ != nullptr && up_) dirty = LostModules(ledger_, *table_, options_.boot);
  for (const ModuleSet lost : lost_foreign_) dirty = dirty | lost;
  return dirty;
}

std::uint64_t Enforcer::Impl::NewId() {
  const auto seconds = static_cast<std::uint64_t>(
      std::max<std::int64_t>(1, absl::ToUnixSeconds(parts_.clock->Now())));
  last_id_ = ledger_.NextId(std::max(seconds, last_id_ + 1));
  return last_id_;
}

void Enforcer::Impl::Tell(absl::string_view name, Severity severity, std::string message,
                          const TenancyRecord* record) {
  Event event{name, severity, std::move(message), {}};
  if (record != nullptr) {
    event.fields.emplace_back("tenancy", absl::StrCat(record->id));
    event.fields.emplace_back("partition", absl::StrCat(record->partition));
    event.fields.emplace_back("modules", record->modules.ToString());
    if (record->owner)
      event.fields.emplace_back("owner",
                                absl::StrCat(record->owner->kind, " ", record->owner->key));
  }
  parts_.events->Report(event);
}

}  // namespace switchyard::tenancy
