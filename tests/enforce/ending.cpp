// SPDX-License-Identifier: Apache-2.0
// The end of a run: no more faults, some time, and then everything must be as clean as it can be.
#include <algorithm>
#include <utility>

#include "tests/enforce/world.h"

namespace switchyard::enforce_sim {

using fabric::ModuleSet;

namespace {

constexpr int kTurns = 8;
constexpr std::int64_t kTurnMs = 20'000;  // together more than grace, settling and a late listing

// By then whatever nobody has is gone: grace, settling, a late listing and a few turns.
constexpr std::int64_t kCleanMs = 125'000;

}  // namespace

void World::EndFaults() {
  quiet_ = true;
  profile_.delays = false;
  profile_.odd_processes = false;
  fabric_.Heal();
  journal_.full = false;
  journal_.fail_percent = 0;
  kubelet_.deaf = false;
  kubelet_.incomplete_until = kubelet_.cut_off_until = 0;
  kubelet_.Settle();
  hardware_.blind = false;
  for (Process& process : hardware_.processes) {
    process.sight = Sight::kPlain;
    if (process.pod == 0) process.ends = stage_.now();
  }
  for (Gpu& gpu : hardware_.gpus) gpu.present = gpu.mapped = true;
  MakeMap();
  journal_.draining = false;
  if (enforcer_ == nullptr) StartAgent();
  Ask(Cause::kDrain, 0, [](tenancy::Enforcer& enforcer) { (void)enforcer.Drain(false); });
  ShowBoard();
}

void World::CheckNothingLeaked(const char* when) {
  ModuleSet live = kubelet_.Live() | kubelet_.Used();
  for (const Pod& pod : kubelet_.pods) {
    if (pod.claim && pod.recorded) live = live | pod.modules();
  }
  for (const auto& [id, record] : journal_.records) {
    const std::int64_t idle =
        std::min(rules_.IdleMs(record.modules), stage_.now() - fabric_.up_since);
    if (!record.modules.Overlaps(live) && idle > kCleanMs)
      stage_.Break(Rule::kLeaked, when, ": tenancy ", id, " (", record.modules, ") is ",
                   tenancy::TenancyStateName(record.state), ", and nobody has it");
  }
  for (const FabricModel::Row& row : fabric_.rows()) {
    if (row.active && !row.found && journal_.FindExact(row.modules) == nullptr)
      stage_.Break(Rule::kLeaked, when, ": partition ", row.id, " (", row.modules,
                   ") is active, and no tenancy's");
  }
}

// What nobody has can be had; of tenancies whose pods have just gone only if `at_once`.
void World::CheckFreeCanBeHad(int tries, bool at_once) {
  const ModuleSet dirty = enforcer_->View().dirty;
  for (int i = 0; i < tries && !stage_.broken; ++i) {
    ModuleSet used = kubelet_.Live() | kubelet_.Used();
    for (const auto& [id, record] : journal_.records) {
      if (!at_once || record.until_released) used = used | record.modules;
    }
    ModuleSet taken = kubelet_.Live() | kubelet_.Used() | dirty;
    for (const auto& [id, record] : journal_.records) {
      if (record.until_released) taken = taken | record.modules;
    }
    for (const FabricModel::Row& row : fabric_.rows()) {
      if (row.active && row.modules.Overlaps(used)) taken = taken | row.modules;
    }
    std::vector<ModuleSet> free;
    for (const FabricModel::Row& row : fabric_.rows()) {
      const bool whole =
          std::all_of(hardware_.gpus.begin(), hardware_.gpus.end(), [&](const Gpu& gpu) {
            return !gpu.modules.Overlaps(row.modules) || row.modules.ContainsAll(gpu.modules);
          });
      if (whole && !row.modules.Overlaps(taken) && !BesideForeign(row.modules))
        free.push_back(row.modules);
    }
    if (free.empty()) return;
    Pod pod;
    pod.uid = next_uid_++;
    pod.name = absl::StrCat("end", pod.uid);
    pod.mains.push_back({stage_.random.Of(free), {}});
    const ModuleSet modules = pod.modules();
    if (!AdmitPod(std::move(pod)))
      stage_.Break(Rule::kRefusedForNothing, "modules ", modules, " are free: ", refusal_);
  }
}

// What was found stands in the way of these, and in a tenancy that these do not touch.
bool World::BesideForeign(ModuleSet modules) const {
  return std::any_of(
      fabric_.rows().begin(), fabric_.rows().end(), [&](const FabricModel::Row& row) {
        return row.active && row.found && row.modules.Overlaps(modules) &&
               std::any_of(journal_.records.begin(), journal_.records.end(),
                           [&](const auto& entry) {
                             const ModuleSet its = entry.second.modules;
                             return its.Overlaps(row.modules) && !its.Overlaps(modules);
                           });
      });
}

// What the agent says of it is what is so.
void World::CheckDirty() {
  const tenancy::EnforceView view = enforcer_->View();
  if (!view.fabric_up) return;
  for (const tenancy::TenancyView& one : view.tenancies) {
    const FabricModel::Row* row = fabric_.FindExact(one.record.modules);
    const bool lost = one.record.state == tenancy::TenancyState::kActive &&
                      one.record.boot == rules_.boot && row != nullptr && !row->active;
    if (lost && !one.active && !view.dirty.ContainsAll(one.record.modules))
      stage_.Break(Rule::kWrongWord, "tenancy ", one.record.id, " (", one.record.modules,
                   ") has lost its partition, and the fabric is not dirty");
    if (!lost && row != nullptr && row->active == one.active &&
        view.dirty.ContainsAll(one.record.modules) && rules_.IdleMs(one.record.modules) > kCleanMs)
      stage_.Break(Rule::kWrongWord, "modules ", one.record.modules,
                   " are called dirty, and nothing was lost");
  }
}

void World::TakeTurns() {
  for (int i = 0; i < kTurns && !stage_.broken; ++i) {
    Turn(kTurnMs);
    UnprepareOwed();
    kubelet_.Bury();
    rules_.Always();
  }
}

void World::End() {
  stage_.Tell("-- the faults end");
  EndFaults();
  TakeTurns();
  if (stage_.broken) return;
  // Until kubelet names a pod, what nobody has is kept, and gives way to whoever asks.
  if (!std::exchange(kubelet_.others, true)) {
    if (fabric_.life == FabricModel::Life::kUp) CheckFreeCanBeHad(2, true);
    TakeTurns();
  }
  if (stage_.broken) return;
  const bool up = fabric_.life == FabricModel::Life::kUp;
  if (up) {
    CheckNothingLeaked("with pods");
    CheckDirty();
    CheckStarts();
    CheckFreeCanBeHad(3, false);
  }
  if (stage_.broken) return;

  stage_.Tell("-- every pod ends");
  for (Process& process : hardware_.processes) process.ends = stage_.now();
  Pass(0);
  for (Pod& pod : kubelet_.pods) Forget(pod);
  if (up && fabric_.life == FabricModel::Life::kUp) CheckFreeCanBeHad(2, true);
  for (Pod& pod : kubelet_.pods) {
    if (pod.recorded) Forget(pod);
  }
  for (int i = 0; i < kTurns + (up ? 0 : kTurns) && !stage_.broken; ++i) {
    UnprepareOwed();
    kubelet_.Bury();
    Turn(kTurnMs);
    rules_.Always();
  }
  if (fabric_.life != FabricModel::Life::kUp)
    stage_.Break(Rule::kLeaked, "Fabric Manager still waits for the active list");
  CheckNothingLeaked("without pods");
  const tenancy::BlockedDevices blocked = enforcer_->Blocked();
  if (!blocked.empty())
    stage_.Break(Rule::kLeaked, blocked.begin()->first.ToString(),
                 " is still blocked: ", blocked.begin()->second);
  if (const ModuleSet dirty = enforcer_->View().dirty; !dirty.empty())
    stage_.Break(Rule::kLeaked, "modules ", dirty, " are still dirty");
  CheckFreeCanBeHad(4, false);
}

// A pod that was admitted and has its devices can start.
void World::CheckStarts() {
  for (const Pod& pod : kubelet_.pods) {
    if (!pod.recorded || !pod.restartable || pod.revoked || pod.claim || stage_.broken) continue;
    if (hardware_.FindOf(pod.uid) != nullptr) continue;
    for (const Container& container : pod.mains) {
      const FabricModel::Row* row = fabric_.FindExact(container.modules);
      const tenancy::TenancyRecord* record = journal_.FindExact(container.modules);
      if (row == nullptr || record == nullptr || hardware_.Held().Overlaps(container.modules))
        continue;
      const bool same =
          std::all_of(container.granted.begin(), container.granted.end(), [&](const auto& then) {
            return SameNodes(then, hardware_.NodesOf(*hardware_.Find(then.address)));
          });
      const bool in_the_way = std::any_of(
          fabric_.rows().begin(), fabric_.rows().end(), [&](const FabricModel::Row& other) {
            return other.active && other.id != row->id && other.modules.Overlaps(row->modules);
          });
      if (!same || in_the_way) continue;
      Status status;
      Ask(Cause::kStart, pod.uid, [&](tenancy::Enforcer& enforcer) {
        status = enforcer.PreStart(hardware_.DevicesOf(container.modules));
      });
      if (!status.ok())
        stage_.Break(Rule::kRefusedForNothing, "pod ", pod.uid, " can't start with ",
                     container.modules, ": ", status.message());
    }
  }
}

}  // namespace switchyard::enforce_sim
