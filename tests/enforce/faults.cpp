// SPDX-License-Identifier: Apache-2.0
// What goes wrong on a node.
#include <algorithm>
#include <utility>

#include "tests/enforce/world.h"

namespace switchyard::enforce_sim {

using fabric::ModuleSet;

void World::FabricTrouble() {
  Random& random = stage_.random;
  static constexpr int kPercents[] = {0, 0, 20, 60};
  switch (random.Below(6)) {
    case 0:
      fabric_.GoDown(random.Between(1, 60) * 1000);
      return;
    case 1:
      fabric_.SetWrongMode(fabric_.life == FabricModel::Life::kUp);
      return;
    case 2:
      fabric_.slow_percent = kPercents[random.Below(4)];
      return;
    case 3:
      fabric_.late_percent = kPercents[random.Below(4)];
      return;
    default:
      fabric_.flaky_percent = kPercents[random.Below(4)];
      return;
  }
}

bool World::Knows(const fabric::PartitionTable* table) const {
  if (table == nullptr || !remembered_) return true;  // nothing wrong, at least
  return std::all_of(fabric_.rows().begin(), fabric_.rows().end(), [&](const auto& row) {
    const auto kept =
        std::find_if(remembered_->partitions.begin(), remembered_->partitions.end(),
                     [&](const fabric::FabricPartition& p) { return p.id == row.id; });
    const fabric::Partition* p = table->Find(row.id);
    return p != nullptr && p->modules == row.modules && kept != remembered_->partitions.end() &&
           static_cast<int>(kept->gpus.size()) == row.modules.size() &&
           row.modules.Contains(static_cast<int>(kept->gpus.front().physical_id));
  });
}

void World::FabricRestart() {
  Random& random = stage_.random;
  const std::int64_t down = random.Between(0, 20) * 1000;
  // Ids of a table that the agent never read can't be sent by it.
  const bool known = enforcer_ != nullptr && Knows(enforcer_->Table().get());
  if (random.Percent(10)) restart_is_warm_ = !restart_is_warm_;
  if (restart_is_warm_ && known && random.Percent(80)) return fabric_.WarmRestart(down);
  fabric_.ColdRestart(down, random.Percent(25));
}

// Partitions that another plugin activated, and the pods that run on them; it may have given one
// partition to two.
void World::Predecessor() {
  for (int i = 0; i < 2; ++i) Outsider();
  for (const FabricModel::Row& row : fabric_.rows()) {
    if (!row.active || stage_.random.Percent(40)) continue;
    std::vector<Gpu> gpus;
    for (const Gpu& gpu : hardware_.gpus) {
      if (row.modules.ContainsAll(gpu.modules)) gpus.push_back(gpu);
    }
    const size_t pods = gpus.size() > 1 && stage_.random.Percent(30) ? 2 : 1;
    for (size_t i = 0; i < pods; ++i) {
      Pod pod;
      pod.uid = next_uid_++;
      pod.name = absl::StrCat("before", pod.uid);
      ModuleSet modules;
      for (size_t g = i; g < gpus.size(); g += pods) modules = modules | gpus[g].modules;
      if (modules.empty()) continue;
      pod.mains.push_back({modules, hardware_.DevicesOf(modules)});
      pod.recorded = true;
      stage_.Tell("pod ", pod.uid, " has ", modules, " from a predecessor");
      hardware_.Open(pod.uid, modules, Sight::kPlain);
      kubelet_.pods.push_back(std::move(pod));
    }
  }
}

// Somebody else changes the fabric by hand, which nobody should.
void World::Outsider() {
  Random& random = stage_.random;
  if (fabric_.life != FabricModel::Life::kUp) return;
  FabricModel::Row row = random.Of(fabric_.rows());
  FabricModel::Row& real = *fabric_.Find(row.id);
  if (real.active) {
    if (random.Percent(40)) fabric_.SetActive(real, false, FabricModel::By::kOutsider);
    return;
  }
  for (const FabricModel::Row& other : fabric_.rows()) {
    if (other.active && other.modules.Overlaps(real.modules)) return;
  }
  fabric_.SetActive(real, true, FabricModel::By::kOutsider);
  // Whoever sees it in the list takes it for the outcome of a call that is still on its way.
  fabric_.OrphanLate(real.modules);
}

void World::JournalTrouble() {
  Random& random = stage_.random;
  static constexpr int kPercents[] = {0, 0, 20, 50};
  if (random.Percent(40)) {
    journal_.full = !journal_.full;
    stage_.Tell("disk: ", journal_.full ? "full" : "has room again");
  } else {
    journal_.fail_percent = kPercents[random.Below(4)];
    stage_.Tell("disk: ", journal_.fail_percent, " % of writes fail");
  }
}

// Noticed at the agent's next start, so it ends first.
void World::LoseJournal() {
  KillAgent("before its disk loses something");
  if (stage_.random.Percent(50) && !journal_.records.empty()) {
    auto record = journal_.records.begin();
    std::advance(record, stage_.random.Below(static_cast<int>(journal_.records.size())));
    stage_.Tell("disk: tenancy ", record->first, " is damaged");
    rules_.Orphan(journal_.Corrupt(record->first));
    return;
  }
  stage_.Tell("disk: the state is lost");
  rules_.Orphan(journal_.Lose());
  remembered_.reset();  // it is in the same file
}

void World::KubeletTrouble() {
  if (stage_.random.Percent(50)) {
    kubelet_.deaf = !kubelet_.deaf;
    stage_.Tell("kubelet: ", kubelet_.deaf ? "does not answer" : "answers again");
    return;
  }
  // Two lists that lack a pod, the grace apart, with no whole one between them, are no fault that
  // anybody can see.
  stage_.Tell("kubelet: restarts");
  RestartKubelet(true);
}

void World::RestartKubelet(bool incomplete) {
  incomplete = incomplete && std::exchange(whole_told_, false);
  kubelet_.Restart(incomplete, stage_.random.Percent(30));
}

void World::DeviceTrouble() {
  Gpu& gpu = stage_.random.Of(hardware_.gpus);
  if (gpu.present && gpu.modules.Overlaps(hardware_.Held())) return;
  gpu.present = !gpu.present;
  stage_.Tell("device of module ", gpu.modules, gpu.present ? " is back" : " is gone");
  // The kernel tells at once of a device that comes.
  if (gpu.present || stage_.random.Percent(60)) ShowBoard();
}

// A file of the map breaks and takes all entries or some with it, or is mended.
void World::MapTrouble() {
  const int percent = stage_.random.Below(3) * 50;
  for (Gpu& gpu : hardware_.gpus) gpu.mapped = !stage_.random.Percent(percent);
  stage_.Tell("the module map lacks ", percent, " % of the GPUs");
  MakeMap();
  ShowBoard();
}

void World::StrayProcess() {
  Random& random = stage_.random;
  if (random.Percent(20)) {
    hardware_.blind = !hardware_.blind;
    stage_.Tell("proc ", hardware_.blind ? "can't be read" : "can be read again");
    return;
  }
  const Gpu& gpu = random.Of(hardware_.gpus);
  if (!gpu.present || hardware_.Held().Overlaps(gpu.modules)) return;
  const int pid = hardware_.Open(0, gpu.modules, static_cast<Sight>(random.Below(4)));
  hardware_.processes.back().ends = stage_.now() + random.Between(1, 60) * 1000;
  stage_.Tell("process ", pid, " of nobody opens ", gpu.modules);
}

void World::Reboot() {
  KillAgent("by a reboot of the node");
  const bool renumber = stage_.random.Percent(50);
  stage_.Tell("the node boots", renumber ? ", its devices have other numbers" : "");
  hardware_.Reboot(renumber);
  kubelet_.Reboot();
  RestartKubelet(stage_.random.Percent(80));
  ++rules_.boot.low;
  // A remembered list of another boot has no active partitions (FabricState::ListOfThisBoot).
  if (remembered_) {
    for (fabric::FabricPartition& partition : remembered_->partitions) partition.active = false;
  }
  fabric_.ColdRestart(stage_.random.Between(0, 40) * 1000, stage_.random.Percent(10));
}

void World::Operator() {
  Random& random = stage_.random;
  if (enforcer_ == nullptr) return;
  if (random.Percent(20)) {
    const bool on = random.Percent(50);
    stage_.Tell("operator: drain ", on ? "on" : "off");
    Ask(Cause::kDrain, 0, [on](tenancy::Enforcer& enforcer) { (void)enforcer.Drain(on); });
    return;
  }
  if (random.Percent(30)) {
    const std::uint64_t before = journal_.changes + fabric_.asked;
    Ask(Cause::kDryRun, 0, [](tenancy::Enforcer& enforcer) { (void)enforcer.PlanReconcile(); });
    if (journal_.changes + fabric_.asked != before)
      stage_.Break(Rule::kPlanActed, "a dry run touched journal or fabric");
    return;
  }
  if (journal_.records.empty()) return;
  auto record = journal_.records.begin();
  std::advance(record, random.Below(static_cast<int>(journal_.records.size())));
  const std::uint64_t id = record->first;
  const bool force = random.Percent(50);
  stage_.Tell("operator: release ", id, force ? " --force" : "");
  Ask(force ? Cause::kForce : Cause::kRelease, 0, [&](tenancy::Enforcer& enforcer) {
    const Status status = enforcer.ReleaseById(id, force);
    stage_.Tell("  ", status.ok() ? "released" : status.message());
  });
  // Begun, it is finished by the reconciler, whatever it was told meanwhile.
  const auto left = journal_.records.find(id);
  if (force && left != journal_.records.end() &&
      left->second.state == tenancy::TenancyState::kReleasing)
    rules_.Revoke(left->second.modules);
}

}  // namespace switchyard::enforce_sim
