// SPDX-License-Identifier: Apache-2.0
#include "tests/enforce/fabric_model.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "fabric/fm_errors.h"
#include "fabric/nvfm_codes.h"

namespace switchyard::enforce_sim {

using fabric::FabricList;
using fabric::ModuleSet;
namespace nvfm = fabric::nvfm;

namespace {

constexpr int kLateMs = 12'999;  // of a call that still keeps its time limit

std::vector<FabricModel::Row> RowsOf(const fabric::PartitionTable& board) {
  std::vector<FabricModel::Row> rows;
  rows.reserve(board.partitions.size());
  for (const fabric::Partition& p : board.partitions) rows.push_back({p.id, p.modules});
  return rows;
}

const fabric::FabricAddress& Address() {
  static const fabric::FabricAddress address{"127.0.0.1:6666", false};
  return address;
}

}  // namespace

FabricModel::FabricModel(Stage& stage, const fabric::PartitionTable& board)
    : stage_(stage), rows_(RowsOf(board)), all_(rows_) {
  Relist();
}

void FabricModel::Relist() {
  list_.partitions.clear();
  for (const Row& row : rows_) {
    fabric::FabricPartition partition{row.id, row.active, {}};
    for (int m = fabric::kMinModule; m <= fabric::kMaxModule; ++m) {
      if (!row.modules.Contains(m)) continue;
      partition.gpus.emplace_back();
      partition.gpus.back().physical_id = static_cast<unsigned>(m);
    }
    list_.partitions.push_back(std::move(partition));
  }
  list_.max_partitions = static_cast<int>(all_.size());
}

FabricModel::Row* FabricModel::FindExact(ModuleSet modules) {
  const auto found = std::find_if(rows_.begin(), rows_.end(),
                                  [modules](const Row& row) { return row.modules == modules; });
  return found == rows_.end() ? nullptr : &*found;
}

FabricModel::Row* FabricModel::Find(int id) {
  const auto found =
      std::find_if(rows_.begin(), rows_.end(), [id](const Row& row) { return row.id == id; });
  return found == rows_.end() ? nullptr : &*found;
}

bool FabricModel::Overlapped(const Row& row) const {
  return std::any_of(rows_.begin(), rows_.end(), [&](const Row& other) {
    return other.active && other.id != row.id && other.modules.Overlaps(row.modules);
  });
}

void FabricModel::SetActive(Row& row, bool active, By by) {
  if (row.active == active) return;
  row.active = active;
  row.changed_by = by;
  row.told = false;
  if (active && by != By::kOutsider) row.known_lost = false;
  if (!active) row.was_found = row.found;
  row.found = active && by == By::kOutsider;
  list_.partitions[static_cast<size_t>(&row - rows_.data())].active = active;
  stage_.Tell("  fabric: partition ", row.id, " (", row.modules, ") is ",
              active ? "active" : "inactive",
              by == By::kLate ? ", late" : (by == By::kOutsider ? ", by an outsider" : ""));
}

void FabricModel::OrphanLate(ModuleSet modules) {
  for (Late& late : late_) late.orphan = late.orphan || late.modules.Overlaps(modules);
}

// ---- calls -------------------------------------------------------------------------------------

Status FabricModel::NotUp(absl::string_view function) const {
  switch (life) {
    case Life::kDown:
      return fabric::CallError("fmConnect", nvfm::kConnectionNotValid, Address());
    case Life::kWrongMode:
      return fabric::CallError(function, nvfm::kNotSupported, Address());
    case Life::kWaiting:
      return fabric::CallError(function, kWaitsCode, Address());
    case Life::kUp:
      break;
  }
  return OkStatus();
}

FabricList FabricModel::Tell() {
  for (Row& row : rows_) row.told = true;
  return list_;
}

Result<FabricList> FabricModel::ReadPartitions() {
  stage_.Point("reading the partitions");
  if (slow_percent > 0 && stage_.random.Percent(slow_percent)) {
    stage_.Tell("  fabric: no answer to a read");
    stage_.pass(kFabricTimeoutMs);
    return absl::DeadlineExceededError("no answer");
  }
  RETURN_IF_ERROR(NotUp(fabric::kListFunction));
  return Tell();
}

Result<FabricList> FabricModel::Change(int id, bool active, std::int64_t patience_ms) {
  const char* const what = active ? "activating" : "deactivating";
  stage_.Point(what);
  ++asked;
  stage_.Tell("  fabric: ", what, " ", id);
  RETURN_IF_ERROR(NotUp(active ? "fmActivateFabricPartition" : "fmDeactivateFabricPartition"));
  Row* const row = Find(id);
  if (row == nullptr) return absl::InvalidArgumentError("no such partition");
  excused_ = false;
  (active ? before_activate : before_deactivate)(*row);
  if (active && !row->active && Overlapped(*row))
    return absl::AlreadyExistsError("a GPU is in another active partition");
  if (stage_.DiesHere()) {
    Apply(AnyEffect(), *row, active);
    stage_.Die("in the middle of a change of the fabric");
  }
  if (flaky_percent > 0 && stage_.random.Percent(flaky_percent))
    return Fail(*row, active, patience_ms);
  std::int64_t takes = 0;
  if (stage_.random.Percent(lazy_percent)) takes += stage_.random.Between(1, 2000);
  if (stage_.random.Percent(late_percent)) takes += stage_.random.Between(kLateMs - 1000, kLateMs);
  if (takes > patience_ms) return Hang(*row, active, patience_ms);
  if (takes > 0) stage_.pass(takes);
  if (life == Life::kUp) Apply(Effect::kNow, *row, active);
  stage_.Point("after a change of the fabric");
  return Tell();
}

Result<FabricList> FabricModel::Hang(Row& row, bool active, std::int64_t patience_ms) {
  stage_.Tell("  fabric: hangs");
  Apply(AnyEffect(), row, active, patience_ms);
  stage_.pass(patience_ms);
  stage_.Point("after a hang of the fabric");
  return absl::DeadlineExceededError("no answer in time; the helper was killed");
}

Result<FabricList> FabricModel::Fail(Row& row, bool active, std::int64_t patience_ms) {
  switch (stage_.random.Below(6)) {
    case 0:
      return Hang(row, active, patience_ms);
    case 1:
      stage_.Tell("  fabric: says success and does nothing");
      if (stage_.random.Percent(50)) return Tell();
      return absl::UnknownError("a success that the list does not show");
    case 2:
      stage_.Tell("  fabric: fails with a fault");
      Apply(stage_.random.Percent(50) ? Effect::kNow : Effect::kNone, row, active);
      return fabric::CallError(active ? "fmActivateFabricPartition" : "fmDeactivateFabricPartition",
                               -10, Address());
    case 3:
      stage_.Tell("  fabric: the library crashes");
      Apply(AnyEffect(), row, active);
      return absl::AbortedError("the library crashed inside the helper");
    case 4:
      stage_.Tell("  fabric: the connection breaks");
      Apply(AnyEffect(), row, active);
      return absl::UnavailableError("the connection was lost");
    default:
      stage_.Tell("  fabric: the list can't be read after the change");
      Apply(Effect::kNow, row, active);
      return absl::UnknownError("success, and the list could not be read");
  }
}

void FabricModel::Apply(Effect effect, Row& row, bool active, std::int64_t patience_ms) {
  if (effect == Effect::kNow) SetActive(row, active, excused_ ? By::kOutsider : By::kAgent);
  if (effect != Effect::kLate) return;
  const int most = static_cast<int>(patience_ms + kFabricTimeoutMs);
  // It is so already: whoever reads the list takes that for the outcome.
  const bool already = active && row.active;
  late_.push_back(
      {stage_.now() + stage_.random.Between(1, most), row.modules, active, excused_ || already});
}

Result<FabricList> FabricModel::SetActivated(std::span<const int> ids) {
  stage_.Point("sending the active list");
  ++asked;
  stage_.Tell("  fabric: is sent the active list ", absl::StrJoin(ids, ","));
  before_list(ids);
  if (life != Life::kWaiting) RETURN_IF_ERROR(NotUp("fmSetActivatedFabricPartitions"));
  if (life == Life::kUp) return absl::InternalError("no list is waited for");
  const bool dies = stage_.DiesHere();
  const bool fails = flaky_percent > 0 && stage_.random.Percent(flaky_percent);
  if (!((dies || fails) && stage_.random.Percent(50))) {
    for (Row& row : rows_) {
      const bool sent = std::find(ids.begin(), ids.end(), row.id) != ids.end();
      const bool revives = sent && !row.active && row.was_found;
      SetActive(row, sent, By::kAgent);
      if (revives) row.found = true;
    }
    ComeUp();
    until_ = kNever;
  }
  if (dies) stage_.Die("in the middle of sending the active list");
  if (fails) {
    stage_.Tell("  fabric: hangs");
    stage_.pass(kFabricTimeoutMs);
    return absl::DeadlineExceededError("no answer in time");
  }
  stage_.Point("after the active list");
  return Tell();
}

// ---- its life ----------------------------------------------------------------------------------

void FabricModel::ColdRestart(std::int64_t down_ms, bool another_table) {
  stage_.Tell("fabric: cold restart", another_table ? ", with another table" : "");
  late_.clear();
  for (Row& row : rows_) SetActive(row, false, By::kOutsider);
  if (another_table) {
    const int shift = stage_.random.Between(1, 20);
    rows_.clear();
    for (const Row& row : all_) {
      if (row.modules.size() > 1 && stage_.random.Percent(10)) continue;  // a degraded board
      rows_.push_back({row.id + shift, row.modules});
    }
    Relist();
  }
  GoDown(down_ms);
  next_ = Life::kUp;
}

void FabricModel::WarmRestart(std::int64_t down_ms) {
  stage_.Tell("fabric: warm restart");
  late_.clear();
  GoDown(down_ms);
  next_ = Life::kWaiting;
}

void FabricModel::GoDown(std::int64_t down_ms) {
  if (life == Life::kWaiting || (life == Life::kDown && next_ == Life::kWaiting)) {
    next_ = Life::kWaiting;
  } else {
    next_ = Life::kUp;
  }
  life = Life::kDown;
  until_ = down_ms == kNever ? kNever : stage_.now() + down_ms;
  stage_.Tell("fabric: down");
}

void FabricModel::SetWrongMode(bool wrong) {
  if (life != (wrong ? Life::kUp : Life::kWrongMode)) return;
  if (!wrong) ComeUp();
  if (wrong) life = Life::kWrongMode;
  stage_.Tell("fabric: ", wrong ? "wrong mode" : "right mode again");
}

void FabricModel::ComeUp() {
  life = Life::kUp;
  up_since = stage_.now();
}

void FabricModel::Heal() {
  flaky_percent = slow_percent = lazy_percent = late_percent = 0;
  SetWrongMode(false);
  if (life == Life::kDown) until_ = std::min(until_, stage_.now() + 1000);
}

void FabricModel::Tick() {
  const std::vector<Late> due = [&] {
    std::vector<Late> taken;
    std::erase_if(late_, [&](const Late& late) {
      if (late.at > stage_.now()) return false;
      taken.push_back(late);
      return true;
    });
    return taken;
  }();
  for (const Late& late : due) {
    Row* const row = FindExact(late.modules);
    if (row == nullptr || row->active == late.active) continue;
    if (late.active && Overlapped(*row)) continue;
    if (!late.orphan) before_late(*row, late.active);
    SetActive(*row, late.active, late.orphan ? By::kOutsider : By::kLate);
  }
  if (until_ > stage_.now()) return;
  until_ = kNever;
  if (life == Life::kDown) {
    life = next_;
    if (life == Life::kUp) ComeUp();
    if (life == Life::kWaiting) until_ = stage_.now() + kWarmWindowMs;
    stage_.Tell("fabric: ", life == Life::kUp ? "up" : "waits for the active list");
  } else if (life == Life::kWaiting) {
    stage_.Tell("fabric: nobody sent the list, exits");
    GoDown(stage_.random.Between(5, 60) * 1000);
  }
}

std::int64_t FabricModel::NextTick() const {
  std::int64_t next = until_;
  for (const Late& late : late_) next = std::min(next, late.at);
  return next;
}

}  // namespace switchyard::enforce_sim
