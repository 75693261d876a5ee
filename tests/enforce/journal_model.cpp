// SPDX-License-Identifier: Apache-2.0
#include "tests/enforce/journal_model.h"

#include <algorithm>

namespace switchyard::enforce_sim {

using fabric::ModuleSet;
using tenancy::TenancyRecord;

template <typename Effect>
Status JournalModel::Do(const char* what, const Effect& effect) {
  stage_.Point(what);
  const bool fails = !full && fail_percent > 0 && stage_.random.Percent(fail_percent);
  if (full || fails) ++failures;
  if (full) return absl::ResourceExhaustedError("no space left on device");
  if (fails && stage_.random.Percent(60)) {
    stage_.Tell("  ", what, ": I/O error, nothing written");
    return absl::DataLossError("I/O error");
  }
  ++changes;
  effect();
  stage_.Point("after a write");
  if (!fails) return OkStatus();
  stage_.Tell("  ", what, ": I/O error, and written all the same");
  return absl::DataLossError("I/O error");
}

Result<tenancy::Journal::Content> JournalModel::Load() {
  stage_.Point("reading the journal");
  unconfirmed.clear();
  doubted.clear();
  Content content;
  for (const auto& [id, record] : records) content.records.push_back(record);
  content.foreign = foreign;
  content.foreign_boot = foreign_boot;
  content.draining = draining;
  for (const std::uint64_t id : corrupt)
    content.lost.push_back(absl::StrCat("tenancy ", id, ": not JSON"));
  return content;
}

Status JournalModel::Write(const TenancyRecord& record) {
  const bool is_new = !records.contains(record.id);
  const Status written = Do("writing a tenancy", [&] {
    stage_.Tell("  journal: ", record.id, " ", tenancy::TenancyStateName(record.state), " ",
                record.modules, record.owner ? " of " : "", record.owner ? record.owner->key : "");
    if (on_write) on_write(record);
    records[record.id] = record;
  });
  if (written.ok()) {
    unconfirmed.erase(record.id);
    doubted.erase(record.id);
  } else if (is_new) {
    unconfirmed.insert(record.id);
  } else {
    doubted.insert(record.id);
  }
  return written;
}

Status JournalModel::Erase(std::uint64_t id) {
  return Do("erasing a tenancy", [&] {
    stage_.Tell("  journal: ", id, " erased");
    if (on_erase) on_erase(id);
    records.erase(id);
    corrupt.erase(id);
  });
}

Status JournalModel::WriteForeign(std::span<const ModuleSet> sets, const tenancy::BootId& boot) {
  return Do("writing foreign partitions", [&] {
    stage_.Tell("  journal: ", sets.size(), " foreign partitions");
    foreign.assign(sets.begin(), sets.end());
    foreign_boot = boot;
  });
}

Status JournalModel::WriteDraining(bool on) {
  return Do("writing the drain", [&] { draining = on; });
}

const TenancyRecord* JournalModel::FindExact(ModuleSet modules) const {
  for (const auto& [id, record] : records) {
    if (record.modules == modules) return &record;
  }
  return nullptr;
}

bool JournalModel::IsForeign(ModuleSet modules, const tenancy::BootId& boot) const {
  return foreign_boot == boot &&
         std::find(foreign.begin(), foreign.end(), modules) != foreign.end();
}

ModuleSet JournalModel::Lose() {
  ModuleSet modules;
  for (const auto& [id, record] : records) modules = modules | record.modules;
  for (const ModuleSet set : foreign) modules = modules | set;
  records.clear();
  corrupt.clear();
  foreign.clear();
  foreign_boot = {};
  return modules;
}

ModuleSet JournalModel::Corrupt(std::uint64_t id) {
  const auto found = records.find(id);
  if (found == records.end()) return {};
  const ModuleSet modules = found->second.modules;
  records.erase(found);
  corrupt.insert(id);
  return modules;
}

}  // namespace switchyard::enforce_sim
