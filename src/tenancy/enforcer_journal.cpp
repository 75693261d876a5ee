// SPDX-License-Identifier: Apache-2.0
// What the Enforcer writes to its journal: what could not be written is remembered and written
// again before anything else is done.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tenancy/enforcer_impl.h"
#include "tenancy/partition_sets.h"

namespace switchyard::tenancy {
namespace {

using fabric::ModuleSet;
using fabric::Partition;

template <typename T>
void EraseValue(std::vector<T>& values, const T& value) {
  values.erase(std::remove(values.begin(), values.end(), value), values.end());
}

}  // namespace

void Enforcer::Impl::ReportJournal(const Status& status) {
  if (status.ok() != journal_failing_) return;
  journal_failing_ = !status.ok();
  Tell(status.ok() ? "journal_writable" : "journal_failed",
       status.ok() ? Severity::kInfo : Severity::kError,
       status.ok() ? std::string("the journal can be written again")
                   : absl::StrCat("the journal can't be written: ", status.message(),
                                  "; nothing is granted or released until it can, look at the "
                                  "state folder"),
       nullptr);
}

Status Enforcer::Impl::EraseStrays() {
  while (!strays_.empty()) {
    const std::uint64_t id = strays_.back();
    Status erased;
    {
      const Outside outside(*this);
      erased = parts_.journal->Erase(id);
    }
    ReportJournal(erased);
    if (!erased.ok()) return Annotate(erased, "the journal can't be written");
    strays_.pop_back();
  }
  return OkStatus();
}

bool Enforcer::Impl::IsUnsaved(std::uint64_t id) const {
  return std::find(unsaved_.begin(), unsaved_.end(), id) != unsaved_.end();
}

Status Enforcer::Impl::SaveUnsaved() {
  RETURN_IF_ERROR(EraseStrays());
  for (const std::uint64_t id : std::vector<std::uint64_t>(unsaved_)) {
    if (const TenancyRecord* record = ledger_.Find(id)) RETURN_IF_ERROR(Save(*record));
  }
  return OkStatus();
}

Status Enforcer::Impl::Save(TenancyRecord record) {
  const TenancyRecord* before = ledger_.Find(record.id);
  const bool is_new = before == nullptr;
  if (is_new || before->state != record.state) record.changed = parts_.clock->Now();
  if (const Status allowed = ledger_.CheckPut(record); !allowed.ok()) {
    Tell("invariant_refused", Severity::kError, std::string(allowed.message()), &record);
    return allowed;
  }
  RETURN_IF_ERROR(EraseStrays());
  Status written;
  // In doubt until the call has returned.
  if (is_new) strays_.push_back(record.id);
  {
    const Outside outside(*this);
    written = parts_.journal->Write(record);
  }
  ReportJournal(written);
  if (!written.ok()) {
    if (!is_new && !IsUnsaved(record.id)) unsaved_.push_back(record.id);
    return Annotate(written, "the journal can't be written");
  }
  if (is_new) {
    strays_.pop_back();
    watches_.push_back({.id = record.id, .granted_at = parts_.clock->Monotonic()});
  }
  EraseValue(unsaved_, record.id);
  ledger_.Put(std::move(record));
  return OkStatus();
}

Status Enforcer::Impl::Erase(std::uint64_t id) {
  if (const Status allowed = ledger_.CheckRemove(id); !allowed.ok()) {
    Tell("invariant_refused", Severity::kError, std::string(allowed.message()), ledger_.Find(id));
    return allowed;
  }
  Status erased;
  {
    const Outside outside(*this);
    erased = parts_.journal->Erase(id);
  }
  ReportJournal(erased);
  if (!erased.ok()) {
    if (!IsUnsaved(id)) unsaved_.push_back(id);
    return Annotate(erased, "the journal can't be written");
  }
  ledger_.Remove(id);
  EraseValue(unsaved_, id);
  std::erase_if(watches_, [id](const Watch& w) { return w.id == id; });
  std::erase_if(reported_, [id](const auto& r) { return r.first == id; });
  return OkStatus();
}

Status Enforcer::Impl::SaveForeign() {
  if (!up_) return OkStatus();  // what is active now is not known
  std::vector<ModuleSet> now;
  if (table_ != nullptr) {
    for (const Partition& p : table_->partitions) {
      if (p.complete && IsForeign(ledger_, p)) now.push_back(p.modules);
    }
  }
  std::erase_if(foreign_since_, [&](const auto& entry) {
    return std::find(now.begin(), now.end(), entry.first) == now.end();
  });
  if (now == foreign_ && !foreign_unsaved_) return OkStatus();
  Status written;
  {
    const Outside outside(*this);
    written = parts_.journal->WriteForeign(now, options_.boot);
  }
  foreign_unsaved_ = !written.ok();
  ReportJournal(written);
  if (!written.ok()) return Annotate(written, "the journal can't be written");
  for (const ModuleSet modules : now) {
    if (std::find(foreign_.begin(), foreign_.end(), modules) != foreign_.end()) continue;
    Tell("foreign_found", Severity::kWarning,
         absl::StrCat("modules ", modules.ToString(),
                      " are an active partition of no tenancy; it is left until it is in the way "
                      "of a request"),
         nullptr);
  }
  foreign_ = std::move(now);
  return OkStatus();
}

}  // namespace switchyard::tenancy
