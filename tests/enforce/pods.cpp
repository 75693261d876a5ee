// SPDX-License-Identifier: Apache-2.0
// What kubelet does with pods.
#include <algorithm>

#include "fabric/planner.h"
#include "tests/enforce/world.h"

namespace switchyard::enforce_sim {

using fabric::ModuleSet;

namespace {

constexpr int kNames = 6;
// allocate.wait and fabric.timeout, whatever it takes.
constexpr std::int64_t kAllocateMs = 5'000 + kFabricTimeoutMs;

}  // namespace

// As kubelet sees it: present and not blocked.
ModuleSet World::Healthy() {
  ModuleSet healthy;
  for (const Gpu& gpu : hardware_.gpus) {
    if (gpu.present) healthy = healthy | gpu.modules;
  }
  if (enforcer_ == nullptr) return healthy;
  for (const auto& [address, why] : enforcer_->Blocked()) {
    if (const Gpu* gpu = hardware_.Find(address)) healthy = healthy - gpu->modules;
  }
  return healthy;
}

std::optional<ModuleSet> World::Choose(int size, ModuleSet available) {
  Random& random = stage_.random;
  const int way = random.Below(100);
  if (way < 65) {  // as the product prefers
    const auto table = enforcer_->Table();
    if (table == nullptr) return std::nullopt;
    fabric::PlanRequest request;
    request.table = table.get();
    request.size = size;
    request.available = available;
    request.usable = available;
    request.busy = enforcer_->BusyModules() | kubelet_.Used();
    request.refuse_joining = true;
    for (const Gpu& gpu : hardware_.gpus) {
      if (gpu.modules.size() > 1) request.shared_groups.push_back(gpu.modules);
    }
    const std::optional<fabric::Candidate> best = fabric::Choose(request);
    if (!best) return std::nullopt;
    return best->partition->modules;
  }
  if (way < 90) {  // any partition
    std::vector<ModuleSet> sets;
    for (const FabricModel::Row& row : fabric_.rows()) {
      if (available.ContainsAll(row.modules)) sets.push_back(row.modules);
    }
    if (sets.empty()) return std::nullopt;
    return random.Of(sets);
  }
  ModuleSet set;  // any devices
  for (int i = 0; i < size; ++i) {
    const Gpu& gpu = random.Of(hardware_.gpus);
    if (available.ContainsAll(gpu.modules)) set = set | gpu.modules;
  }
  if (set.empty()) return std::nullopt;
  return set;
}

// One Allocate. False: refused, or the agent died.
bool World::Allocate(Pod& pod, Container& container) {
  tenancy::TenancyRequest request;
  request.devices = hardware_.DevicesOf(container.modules);
  ModuleSet asked;
  for (const auto& device : request.devices)
    asked = asked | hardware_.Find(device.address)->modules;
  if (asked != container.modules) return false;  // not whole devices
  for (size_t i = request.devices.size(); i > 1; --i)
    std::swap(request.devices[i - 1],
              request.devices[static_cast<size_t>(stage_.random.Below(static_cast<int>(i)))]);
  if (pod.claim) {
    request.owner = tenancy::Owner{"claim", pod.name};
    request.until_released = true;
  }
  stage_.Tell("Allocate ", container.modules, " for pod ", pod.uid, " (", pod.name, ")");
  const std::int64_t began = stage_.now();
  const std::uint64_t before = journal_.LastId();
  const std::uint64_t changes = journal_.changes;
  const tenancy::TenancyRecord* had = journal_.FindExact(container.modules);
  const bool known = had != nullptr && had->until_released && had->owner->key == pod.name;
  Result<tenancy::Acquired> acquired = absl::InternalError("not asked");
  const bool lives = Ask(Cause::kAllocate, pod.uid, [&](tenancy::Enforcer& enforcer) {
    acquired = enforcer.Acquire(request);
  });
  if (stage_.now() - began > kAllocateMs)
    stage_.Break(Rule::kSlow, "an Allocate took ", stage_.now() - began, " ms");
  if ((!lives || !acquired.ok()) && pod.claim && !known) {  // not prepared any more
    pod.recorded = false;
    pod.owes = true;
  }
  if (!lives || !acquired.ok()) {  // what was begun was given to nobody
    for (auto r = journal_.records.upper_bound(before); r != journal_.records.end(); ++r)
      rules_.undone.insert(r->first);
    const tenancy::TenancyRecord* record = journal_.FindExact(container.modules);
    const FabricModel::Row* row = fabric_.FindExact(container.modules);
    if (record != nullptr &&
        (journal_.changes != changes || row == nullptr || !row->active || rules_.Unseen(*row)))
      rules_.undone.insert(record->id);
  }
  if (!lives) return false;
  if (!acquired.ok()) {
    refusal_ = std::string(acquired.status().message());
    stage_.Tell("  refused: ", refusal_);
    return false;
  }
  ++grants_;
  stage_.Tell("  granted: tenancy ", acquired->tenancy, acquired->begun ? ", begun" : "");
  rules_.AfterGrant(pod, container.modules, *acquired);
  rules_.undone.erase(acquired->tenancy);
  container.granted = request.devices;
  pod.revoked = false;
  if (pod.claim || quiet_ || !stage_.random.Percent(4)) return true;
  stage_.Tell("  and something later in the same request fails");
  if (!acquired->begun) return false;
  Undo(pod, *acquired, container.modules);
  if (stage_.now() - began > kAllocateMs)
    stage_.Break(Rule::kSlow, "an Allocate took ", stage_.now() - began, " ms, taken back");
  return false;
}

void World::Undo(const Pod& pod, const tenancy::Acquired& acquired, ModuleSet modules) {
  const auto well = [&] {
    const FabricModel::Row* row = fabric_.FindExact(modules);
    return row != nullptr && !rules_.Unseen(*row) && fabric_.life == FabricModel::Life::kUp &&
           fabric_.flaky_percent == 0 && enforcer_->FabricStatus().ok() && !journal_.full &&
           journal_.fail_percent == 0 && !hardware_.blind && !hardware_.Held().Overlaps(modules) &&
           std::all_of(hardware_.processes.begin(), hardware_.processes.end(),
                       [](const Process& p) { return p.sight == Sight::kPlain; });
  };
  rules_.undone.insert(acquired.tenancy);
  const bool able = well();
  const bool lives =
      Ask(Cause::kUndo, pod.uid, [&](tenancy::Enforcer& enforcer) { enforcer.Undo(acquired); });
  if (lives && able && well() && journal_.records.contains(acquired.tenancy))
    stage_.Break(Rule::kLeaked, "tenancy ", acquired.tenancy, " (", modules,
                 ") was taken back, and is still there");
}

bool World::AdmitPod(Pod pod) {
  kubelet_.Settle();
  if (!pod.init.modules.empty() && !Allocate(pod, pod.init)) return false;
  for (Container& container : pod.mains) {
    if (!Allocate(pod, container)) return false;
  }
  if (!quiet_ && stage_.random.Percent(2)) {
    stage_.Tell("  kubelet restarts and never wrote the pod down");
    kubelet_.Restart(false, false);
    return false;
  }
  pod.recorded = true;
  pod.listed_from = stage_.now() + stage_.random.Between(0, 8'000);
  kubelet_.pods.push_back(std::move(pod));
  return true;
}

void World::Admit() {
  if (enforcer_ == nullptr || kubelet_.CutOff()) return;
  Random& random = stage_.random;
  Pod pod;
  pod.uid = next_uid_++;
  pod.name = absl::StrCat("a", random.Below(kNames));
  if (kubelet_.FindByName(pod.name) != nullptr) return;
  // kubelet learns of health late.
  const ModuleSet present = random.Percent(90) ? Healthy() : board_.table.modules;
  const ModuleSet available = present - kubelet_.Used() - Unknowable();
  static constexpr int kSizes[] = {1, 1, 2, 2, 2, 4, 4, 8, 3, 16};
  const std::optional<ModuleSet> set = Choose(kSizes[random.Below(10)], available);
  if (!set) return;
  pod.mains.push_back({*set, {}});
  const int kind = random.Below(100);
  if (kind < 10) {
    pod.init.modules = *set;
  } else if (kind < 15) {  // an init container that needs less
    for (const FabricModel::Row& row : fabric_.rows()) {
      if (set->ContainsAll(row.modules) && row.modules != *set) pod.init.modules = row.modules;
    }
  } else if (kind < 20) {
    if (const auto second = Choose(1, available - *set)) pod.mains.push_back({*second, {}});
  }
  AdmitPod(std::move(pod));
}

// Whether the agent can know of what this pod has of these: a claim that it remembers, kubelet told
// it, its journal has the owner, or a process has it open and stays.
bool World::IsKnown(const Pod& pod, ModuleSet modules) {
  if (pod.claim) return !Unknowable().Overlaps(modules);
  if (pod.told == incarnation_) return true;
  const ModuleSet its = kubelet_.LiveOf(pod) & modules;
  const Process* process = hardware_.FindOf(pod.uid);
  if (process != nullptr && process->ends == kNever && process->holds.ContainsAll(its)) return true;
  ModuleSet journaled;
  for (const Container& container : pod.mains) {
    const tenancy::TenancyRecord* record = journal_.FindExact(container.modules);
    if (pod.recorded && record != nullptr && record->owner && record->owner->key == pod.name)
      journaled = journaled | container.modules;
  }
  return journaled.ContainsAll(its);
}

// kubelet gives away what pods of its own have.
void World::HandOutTwice() {
  if (enforcer_ == nullptr || kubelet_.pods.empty() || kubelet_.incomplete_until > stage_.now() ||
      kubelet_.CutOff())
    return;
  const ModuleSet its = kubelet_.LiveOf(stage_.random.Of(kubelet_.pods));
  std::vector<ModuleSet> sets;
  for (const FabricModel::Row& row : fabric_.rows()) {
    const bool known = std::all_of(kubelet_.pods.begin(), kubelet_.pods.end(), [&](const Pod& pod) {
      return !kubelet_.LiveOf(pod).Overlaps(row.modules) || IsKnown(pod, row.modules);
    });
    if (known && row.modules.Overlaps(its) && !row.modules.Overlaps(Unknowable()))
      sets.push_back(row.modules);
  }
  if (sets.empty()) return;
  Pod pod;
  pod.uid = next_uid_++;
  pod.name = absl::StrCat("twice", pod.uid);
  pod.mains.push_back({stage_.random.Of(sets), {}});
  stage_.Tell("kubelet: hands out modules ", its, " again");
  AdmitPod(std::move(pod));
}

void World::StartContainer() {
  std::vector<Pod*> ready;
  if (kubelet_.CutOff()) return;
  for (Pod& pod : kubelet_.pods) {
    if (pod.recorded && pod.restartable && !pod.revoked && !pod.deleting &&
        hardware_.FindOf(pod.uid) == nullptr)
      ready.push_back(&pod);
  }
  if (!ready.empty()) Start(*stage_.random.Of(ready));
}

void World::Start(Pod& pod) {
  const bool kata = options_.reactivate_at_start;
  std::vector<Container*> now;
  if (!pod.init.modules.empty() && !pod.init_done) {
    now.push_back(&pod.init);
  } else {
    for (Container& container : pod.mains) now.push_back(&container);
  }
  if (pod.claim) {
    if (pod.readmit && !Allocate(pod, pod.mains.front())) return;
    pod.readmit = false;
  } else if (pod.readmit) {
    if (enforcer_ == nullptr) return;
    // For Kata nothing is healthy before it has been looked at; else kubelet may hear of it late.
    const bool heard = kata || stage_.random.Percent(80);
    if (heard && !Healthy().ContainsAll(pod.modules())) {
      stage_.Tell("kubelet: rejects pod ", pod.uid, " after the reboot, a device is not healthy");
      Forget(pod);
      return;
    }
    if (heard) rules_.AfterReadmission(pod);
    pod.readmit = false;
    if (kata && pod.init.modules.empty()) {
      // Without the journal nobody can know which nodes it was given.
      for (const Container* container : now) {
        const tenancy::TenancyRecord* record = journal_.FindExact(container->modules);
        const FabricModel::Row* row = fabric_.FindExact(container->modules);
        // Lost in this boot: nothing is asked before the VM is built.
        const bool lost =
            record != nullptr && record->boot == rules_.boot &&
            (row == nullptr || (!row->active && row->changed_by == FabricModel::By::kOutsider));
        if (record != nullptr && !lost) rules_.AfterStart(pod, *container);
      }
    }
  }
  const int uid = pod.uid;
  ModuleSet opens;
  for (const Container* container : now) opens = opens | container->modules;
  for (const Container* container : now) {
    for (const auto& device : container->granted) {
      const Gpu* gpu = hardware_.Find(device.address);
      if (gpu == nullptr || !gpu->present) return;
    }
  }
  const auto open = [&] {
    Sight sight = Sight::kPlain;
    if (profile_.odd_processes && stage_.random.Percent(25))
      sight = static_cast<Sight>(stage_.random.Below(4));
    // The kernel lets nobody open what another process has open.
    if (hardware_.Held().Overlaps(opens)) {
      stage_.Tell("pod ", uid, " can't open ", opens, ": busy");
      return false;
    }
    const int pid = hardware_.Open(uid, opens, sight);
    stage_.Tell("process ", pid, " of pod ", uid, " opens ", opens);
    return true;
  };
  if (pod.claim) {
    open();
    return;
  }
  const auto pre_start = [&] {
    for (Container* container : now) {
      Status status = absl::UnavailableError("the agent is down");
      Ask(Cause::kStart, uid, [&](tenancy::Enforcer& enforcer) {
        status = enforcer.PreStart(hardware_.DevicesOf(container->modules));
      });
      stage_.Tell("PreStart of pod ", uid, " (", container->modules,
                  "): ", status.ok() ? "OK" : status.message());
      if (!status.ok()) return false;
      rules_.AfterStart(*kubelet_.FindByUid(uid), *container);
    }
    return true;
  };
  if (kata) {
    if (open() && !pre_start()) hardware_.EndOf(uid);
  } else if (pre_start()) {
    open();
  }
}

void World::EndProcess() {
  if (hardware_.processes.empty()) return;
  Process& process = stage_.random.Of(hardware_.processes);
  process.ends = std::min(process.ends, stage_.now());
  Pass(0);
}

// kubelet has no such pod any more.
void World::Forget(Pod& pod) {
  stage_.Tell("kubelet: pod ", pod.uid, " (", pod.name, ") is no more");
  pod.owes = pod.claim;
  pod.recorded = false;
  pod.restartable = false;
}

void World::DeletePod() {
  std::vector<Pod*> there;
  if (kubelet_.CutOff()) return;
  for (Pod& pod : kubelet_.pods) {
    if (pod.recorded) there.push_back(&pod);
  }
  if (there.empty()) return;
  Random& random = stage_.random;
  Pod& pod = *random.Of(there);
  Process* process = hardware_.FindOf(pod.uid);
  const bool force = random.Percent(35) && !pod.claim;
  stage_.Tell("kubelet: ", force ? "forgets" : "deletes", " pod ", pod.uid, " (", pod.name, ")");
  if (process != nullptr) {
    const std::int64_t ends = stage_.now() + random.Between(0, force ? 300 : 30) * 1000;
    process->ends = std::min(process->ends, ends);
  }
  if (process == nullptr || force) {
    Forget(pod);
  } else {
    pod.deleting = true;
  }
}

}  // namespace switchyard::enforce_sim
