// SPDX-License-Identifier: Apache-2.0
// Fabric Manager's warm restart: it waits 60 s for all partitions that were active, and cuts what
// is left out; without an answer it exits.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tenancy/enforcer_impl.h"
#include "tenancy/partition_sets.h"

namespace switchyard::tenancy {
namespace {

using fabric::ModuleSet;
using fabric::Partition;
using State = TenancyState;

// Sets that go together: what is sent can't overlap.
class Sending {
 public:
  explicit Sending(const fabric::PartitionTable* table) : table_(table) {}

  // Nothing of these is sent.
  void LeaveOut(ModuleSet modules) { left_out_ = left_out_ | modules; }
  void Add(ModuleSet modules, std::optional<int> id) {
    if (modules.Overlaps(sent_ | left_out_)) return;
    const Partition* partition = table_ == nullptr ? nullptr : FindExact(*table_, modules);
    // An id from an older table may be another set's by now.
    if (table_ != nullptr && partition == nullptr) return;
    if (partition != nullptr) id = partition->id;
    if (!id || ids_.size() >= static_cast<size_t>(fabric::kMaxPartitions)) return;
    sent_ = sent_ | modules;
    ids_.push_back(*id);
  }
  [[nodiscard]] bool Has(ModuleSet modules) const { return sent_.ContainsAll(modules); }
  [[nodiscard]] std::vector<int> Take() {
    std::sort(ids_.begin(), ids_.end());
    return std::move(ids_);
  }

 private:
  const fabric::PartitionTable* const table_;
  ModuleSet sent_;
  ModuleSet left_out_;
  std::vector<int> ids_;
};

}  // namespace

// Its deactivation was seen; only its record is left.
bool Enforcer::Impl::KnownInactive(const TenancyRecord& record) const {
  const Partition* partition = table_ == nullptr ? nullptr : FindExact(*table_, record.modules);
  const Watch* watch = FindWatch(record.id);
  return partition != nullptr && !partition->active && watch != nullptr && !watch->uncertain_since;
}

std::vector<int> Enforcer::Impl::ActiveToSend(bool& certain) {
  certain = true;
  Sending sending(table_.get());
  // What was active in another boot is no more, and naming what was lost in this one (a cold
  // restart) would call active what has no NVLink. A remembered list may be older than the tenancy.
  // One that is only activating was given to nobody yet: left out it is inactive, whether or not
  // Fabric Manager had done it, and can be activated again; named it would be active in either
  // case, and without NVLink in one of them.
  for (const TenancyRecord& r : ledger_.records()) {
    if (r.boot != options_.boot || r.lost) continue;
    if ((r.state == State::kActive && !(list_read_ && KnownInactive(r))) ||
        (r.state == State::kReleasing && !KnownInactive(r))) {
      sending.Add(r.modules, r.partition);
    }
  }
  for (const ModuleSet modules : foreign_) {
    const Partition* partition = table_ == nullptr ? nullptr : FindExact(*table_, modules);
    if (partition == nullptr || partition->active) sending.Add(modules, std::nullopt);
  }
  // Those that could not be written, and those of a former boot that were seen active again.
  if (list_read_) {
    for (const Partition& p : table_->partitions) {
      if (p.active && p.complete) sending.Add(p.modules, p.id);
    }
  }
  // What was active when this process last read the list is among them.
  if (list_read_) return sending.Take();

  // A remembered list may be older than the loss that a former agent saw.
  for (const TenancyRecord& r : ledger_.records()) {
    if (r.lost && r.boot == options_.boot) sending.LeaveOut(r.modules);
  }
  // It began while Fabric Manager was waiting: what is in use may be missing in the journal, which
  // knows nothing if it was lost, and not all if it could not be written.
  const bool lost = journal_lost_ || (ledger_.records().empty() && foreign_.empty());
  ModuleSet all;
  for (const Board::Device& device : board_.devices)
    all = all | (device.mapped ? device.modules : ModuleSet::FirstN(fabric::kMaxModule));
  if (table_ != nullptr) all = all | table_->modules;
  const Held held = LookAndAsk(all);
  const ModuleSet used = lost ? held.modules | listing_.modules : held.modules;
  if (table_ == nullptr) {
    certain = !lost || used.empty();
    return sending.Take();
  }
  // kubelet knows better than a list that is remembered.
  if (lost) {
    for (const Listing::Entry& entry : listing_.entries) {
      if (entry.sure == entry.modules) sending.Add(entry.modules, std::nullopt);
    }
  }
  for (const Partition& p : table_->partitions) {
    const auto owners = std::count_if(
        listing_.entries.begin(), listing_.entries.end(),
        [&](const Listing::Entry& entry) { return entry.modules.Overlaps(p.modules); });
    // A remembered one that would join two is none of now.
    if (p.active && p.complete && p.modules.Overlaps(used) && owners <= 1)
      sending.Add(p.modules, p.id);
  }
  // Whoever holds what is in no partition of the list may be cut off by it.
  certain = !lost || (held.status.ok() && sending.Has(held.modules));
  return sending.Take();
}

void Enforcer::Impl::SendActive() {
  bool certain = false;
  const std::vector<int> ids = ActiveToSend(certain);
  const std::string text = ids.empty() ? "none" : absl::StrJoin(ids, ",");
  if (!certain) {
    fabric_ = absl::FailedPreconditionError(
        "Fabric Manager waits for the active partitions after its restart; GPUs are in use, and "
        "neither journal "
        "nor partition list says in which partition; a wrong list would cut them off: nothing was "
        "sent; send the list by hand within 60 s, or end those virtual machines");
    up_ = false;
    Tell("active_list_failed", Severity::kError, std::string(fabric_.message()), nullptr);
    return;
  }
  ++generation_;
  const absl::Duration began = parts_.clock->Monotonic();
  Result<fabric::FabricList> list = absl::InternalError("not asked");
  {
    const Outside outside(*this);
    list = parts_.fabric->SetActivated(ids);
  }
  ++generation_;
  if (!list.ok()) {
    up_ = false;
    fabric_ = list.status();
    const std::optional<int> code = fabric::FabricCodeOf(list.status());
    ++failures_[absl::StrCat(
        "set_activated ",
        code ? absl::StrCat(*code) : absl::StatusCodeToString(list.status().code()))];
    Tell("active_list_failed", Severity::kError,
         absl::StrCat("Fabric Manager waits after its restart and did not take the active "
                      "partitions (",
                      text, "): ", list.status().message(),
                      "; tried again at the next probe, it ends by itself after 60 s"),
         nullptr);
    return;
  }
  TakeList(*std::move(list), began);
  Tell("active_list_sent", Severity::kWarning,
       absl::StrCat("Fabric Manager restarted warm and was told the active partitions: ", text),
       nullptr);
}

}  // namespace switchyard::tenancy
