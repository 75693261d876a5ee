// SPDX-License-Identifier: Apache-2.0
// What kubelet does with claims: it prepares one with its owner, until it succeeds, and gives it
// back.
#include "tests/enforce/world.h"

namespace switchyard::enforce_sim {

using fabric::ModuleSet;

void World::Prepare() {
  if (enforcer_ == nullptr || kubelet_.CutOff()) return;
  Random& random = stage_.random;
  // One that is being prepared is tried again, as kubelet does, or given up.
  for (Pod& pod : kubelet_.pods) {
    if (!pod.claim || !pod.recorded || pod.deleting) continue;
    if (random.Percent(30)) {
      Allocate(pod, pod.mains.front());
      return;
    }
  }
  const ModuleSet available = Healthy() - kubelet_.Live() - kubelet_.Used();
  static constexpr int kSizes[] = {1, 2, 2, 4};
  const std::optional<ModuleSet> set = Choose(kSizes[random.Below(4)], available);
  if (!set) return;
  Pod pod;
  pod.uid = next_uid_++;
  pod.claim = true;
  pod.name = absl::StrCat("c", pod.uid);
  pod.mains.push_back({*set, {}});
  kubelet_.pods.push_back(std::move(pod));
  Pod& added = kubelet_.pods.back();
  added.recorded = Allocate(added, added.mains.front());
  added.owes = !added.recorded;
}

// kubelet tries until it succeeds.
void World::Unprepare(Pod& pod) {
  if (!hardware_.HeldBy(pod.uid).empty()) return;
  Status status = absl::UnavailableError("the agent is down");
  Ask(Cause::kGiveBack, pod.uid,
      [&](tenancy::Enforcer& enforcer) { status = enforcer.ReleaseOwner({"claim", pod.name}); });
  stage_.Tell("Unprepare of ", pod.name, ": ", status.ok() ? "OK" : status.message());
  pod.owes = !status.ok();
}

void World::UnprepareOwed() {
  for (Pod& pod : kubelet_.pods) {
    if (pod.owes && (quiet_ || stage_.random.Percent(20))) Unprepare(pod);
  }
}

// What a claim has that nothing tells of: the disk lost it, and no process has it open.
ModuleSet World::Unknowable() const {
  ModuleSet modules;
  for (const Pod& pod : kubelet_.pods) {
    if (!pod.claim || !pod.recorded) continue;
    const tenancy::TenancyRecord* record = journal_.FindExact(pod.modules());
    if (record == nullptr || !record->until_released)
      modules = modules | (pod.modules() - hardware_.HeldBy(pod.uid));
  }
  return modules;
}

}  // namespace switchyard::enforce_sim
