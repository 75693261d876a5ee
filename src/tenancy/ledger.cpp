// SPDX-License-Identifier: Apache-2.0
#include "tenancy/ledger.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tenancy/partition_sets.h"

namespace switchyard::tenancy {
namespace {

using State = TenancyState;

bool MayBegin(State state) { return state != State::kReleasing; }

bool MayFollow(State from, State to) {
  if (from == to) return true;
  switch (from) {
    case State::kPlanned:
      return to == State::kActivating;
    case State::kActivating:
      return to == State::kActive || to == State::kReleasing;
    case State::kActive:
      return to == State::kActivating || to == State::kReleasing;
    case State::kReleasing:
      return to == State::kActive;
  }
  return false;
}

bool ShareFunction(const TenancyRecord& a, const TenancyRecord& b) {
  for (const TenancyDevice& x : a.devices) {
    for (const TenancyDevice& y : b.devices) {
      if (x.address == y.address) return true;
      for (const TenancyFunction& f : x.functions) {
        for (const TenancyFunction& g : y.functions) {
          if (f.address == g.address) return true;
        }
      }
    }
  }
  return false;
}

Status Refused(std::uint64_t id, const std::string& why) {
  return absl::InternalError(
      absl::StrCat("tenancy ", id, ": ", why, "; nothing was changed, please report this"));
}

}  // namespace

const TenancyRecord* Ledger::Find(std::uint64_t id) const {
  for (const TenancyRecord& record : records_) {
    if (record.id == id) return &record;
  }
  return nullptr;
}

const TenancyRecord* Ledger::FindExact(fabric::ModuleSet modules) const {
  for (const TenancyRecord& record : records_) {
    if (record.modules == modules) return &record;
  }
  return nullptr;
}

const TenancyRecord* Ledger::FindByDevice(const PciAddress& address) const {
  for (const TenancyRecord& record : records_) {
    for (const TenancyDevice& device : record.devices) {
      if (device.address == address) return &record;
    }
  }
  return nullptr;
}

std::uint64_t Ledger::NextId(std::uint64_t at_least) const {
  return records_.empty() ? at_least : std::max(at_least, records_.back().id + 1);
}

Status Ledger::CheckPut(const TenancyRecord& record) const {
  if (const TenancyRecord* before = Find(record.id)) {
    if (before->modules != record.modules) return Refused(record.id, "its modules would change");
    if (!MayFollow(before->state, record.state)) {
      return Refused(record.id, absl::StrCat(TenancyStateName(record.state), " can't follow ",
                                             TenancyStateName(before->state)));
    }
  } else if (!MayBegin(record.state)) {
    return Refused(record.id, absl::StrCat("it can't begin as ", TenancyStateName(record.state)));
  }
  return CheckAlone(record);
}

Status Ledger::Restore(TenancyRecord record) {
  RETURN_IF_ERROR(CheckAlone(record));
  Put(std::move(record));
  return OkStatus();
}

Status Ledger::CheckAlone(const TenancyRecord& record) const {
  if (record.modules.empty()) return Refused(record.id, "it has no module");
  for (const TenancyRecord& other : records_) {
    if (other.id == record.id) continue;
    if (other.modules.Overlaps(record.modules)) {
      return Refused(record.id,
                     absl::StrCat("modules ", (other.modules & record.modules).ToString(),
                                  " are in tenancy ", other.id, " already"));
    }
    if (ShareFunction(other, record)) {
      return Refused(record.id,
                     absl::StrCat("a PCI function of it is in tenancy ", other.id, " already"));
    }
  }
  return OkStatus();
}

void Ledger::Put(TenancyRecord record) {
  modules_ = modules_ | record.modules;
  const auto at =
      std::lower_bound(records_.begin(), records_.end(), record.id,
                       [](const TenancyRecord& r, std::uint64_t id) { return r.id < id; });
  if (at != records_.end() && at->id == record.id) {
    *at = std::move(record);
  } else {
    records_.insert(at, std::move(record));
  }
}

Status Ledger::CheckRemove(std::uint64_t id) const {
  const TenancyRecord* record = Find(id);
  if (record != nullptr && record->state == State::kActive)
    return Refused(id, "it is active and must be released first");
  return OkStatus();
}

void Ledger::Remove(std::uint64_t id) {
  std::erase_if(records_, [id](const TenancyRecord& r) { return r.id == id; });
  modules_ = {};
  for (const TenancyRecord& record : records_) modules_ = modules_ | record.modules;
}

Status CheckActivate(const Ledger& ledger, const fabric::PartitionTable& table, std::uint64_t id,
                     const fabric::Partition& partition) {
  const TenancyRecord* record = ledger.Find(id);
  if (record == nullptr) return Refused(id, "it is not in the journal");
  if (record->state != State::kActivating)
    return Refused(id, absl::StrCat("it is ", TenancyStateName(record->state), ", not activating"));
  if (!partition.complete || partition.modules != record->modules) {
    return Refused(id, absl::StrCat("partition ", partition.id, " is not its modules ",
                                    record->modules.ToString()));
  }
  if (const fabric::Partition* other = Obstructing(table, partition)) {
    return Refused(id, absl::StrCat("partition ", other->id, " is active and shares modules ",
                                    (other->modules & partition.modules).ToString()));
  }
  return OkStatus();
}

Status CheckDeactivate(const Ledger& ledger, const std::vector<fabric::ModuleSet>& foreign,
                       fabric::ModuleSet held, const fabric::Partition& partition) {
  if (partition.modules.Overlaps(held)) {
    return absl::InternalError(absl::StrCat(
        "partition ", partition.id, " can't be deactivated: modules ",
        (partition.modules & held).ToString(), " may be held open; nothing was changed"));
  }
  const TenancyRecord* exact = ledger.FindExact(partition.modules);
  if (exact != nullptr && exact->state == State::kReleasing) return OkStatus();
  const bool is_foreign =
      std::find(foreign.begin(), foreign.end(), partition.modules) != foreign.end();
  if (is_foreign && !ledger.modules().Overlaps(partition.modules)) return OkStatus();
  return absl::InternalError(
      absl::StrCat("partition ", partition.id,
                   " can't be deactivated: the journal has no release of it; "
                   "nothing was changed, please report this"));
}

}  // namespace switchyard::tenancy
