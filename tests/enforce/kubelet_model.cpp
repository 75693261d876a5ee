// SPDX-License-Identifier: Apache-2.0
#include "tests/enforce/kubelet_model.h"

#include <algorithm>

namespace switchyard::enforce_sim {

using fabric::ModuleSet;

// After a start, pods are known one by one.
bool KubeletModel::Missing(const Pod& pod) const {
  return CutOff() ||
         (incomplete_until > stage_.now() && (pod.uid * 7919 + incomplete_until) % 3 != 0);
}

Result<tenancy::AssignmentView> KubeletModel::Read() {
  stage_.Point("listing pods");
  if (deaf) {
    stage_.pass(2000);
    return absl::DeadlineExceededError("kubelet does not answer");
  }
  tenancy::AssignmentView view;
  named.clear();
  if (others && !CutOff()) knowing_ = life_;
  for (const Pod& pod : pods) {
    if (!pod.recorded || pod.listed_from > stage_.now() || Missing(pod)) continue;
    knowing_ = life_;
    if (pod.claim) continue;
    const ModuleSet modules = pod.modules();
    named.emplace(pod.uid, modules);
    for (const Gpu& gpu : hardware_.gpus) {
      if (modules.ContainsAll(gpu.modules)) view.devices[gpu.address] = {"pod", pod.name};
    }
  }
  view.whole = knowing_ == life_;
  return view;
}

Result<bool> KubeletModel::StillHas(const tenancy::Owner& owner,
                                    std::span<const PciAddress> devices) {
  stage_.Point("asking for a pod");
  if (deaf) {
    stage_.pass(2000);
    return absl::DeadlineExceededError("kubelet does not answer");
  }
  if (owner.kind != "pod") return absl::UnimplementedError("not a pod");
  const Pod* pod = FindByName(owner.key);
  if (pod == nullptr || Missing(*pod)) return false;
  const ModuleSet modules = pod->modules();
  return std::any_of(devices.begin(), devices.end(), [&](const PciAddress& address) {
    const Gpu* gpu = hardware_.Find(address);
    return gpu != nullptr && gpu->modules.Overlaps(modules);
  });
}

Pod* KubeletModel::FindByUid(int uid) {
  const auto found =
      std::find_if(pods.begin(), pods.end(), [uid](const Pod& pod) { return pod.uid == uid; });
  return found == pods.end() ? nullptr : &*found;
}

Pod* KubeletModel::FindByName(const std::string& name) {
  const auto found = std::find_if(pods.begin(), pods.end(), [&](const Pod& pod) {
    return pod.recorded && !pod.claim && pod.name == name;
  });
  return found == pods.end() ? nullptr : &*found;
}

ModuleSet KubeletModel::Used() const {
  ModuleSet used;
  for (const Pod& pod : pods) {
    if (pod.recorded && !pod.claim) used = used | pod.modules() | pod.init.modules;
  }
  return used;
}

ModuleSet KubeletModel::LiveOf(const Pod& pod) const {
  const ModuleSet held = hardware_.HeldBy(pod.uid);
  return pod.recorded && !pod.revoked ? held | pod.modules() : held;
}

ModuleSet KubeletModel::Live() const {
  ModuleSet live = hardware_.Held();
  for (const Pod& pod : pods) {
    if (pod.recorded && !pod.revoked) live = live | pod.modules();
  }
  return live;
}

void KubeletModel::Settle() {
  for (Pod& pod : pods) pod.listed_from = std::min(pod.listed_from, stage_.now());
}

void KubeletModel::Restart(bool incomplete, bool cut_off) {
  Settle();
  ++life_;
  cut_off_until = incomplete_until = 0;
  if (cut_off) {
    cut_off_until = stage_.now() + stage_.random.Between(30, 600) * 1000;
    stage_.Tell("kubelet: does not reach the API server, and knows no pods");
  }
  if (!incomplete) return;
  incomplete_until = std::max(stage_.now(), cut_off_until) + stage_.random.Between(1, 20) * 1000;
  if (!cut_off) stage_.Tell("kubelet: knows only some of its pods yet");
}

void KubeletModel::LoseCheckpoint() {
  Restart(false, false);
  for (Pod& pod : pods) {
    if (pod.claim) continue;
    pod.recorded = false;
    pod.restartable = false;
  }
}

void KubeletModel::Reboot() {
  Settle();
  std::erase_if(pods, [](const Pod& pod) { return (pod.deleting || !pod.recorded) && !pod.claim; });
  for (Pod& pod : pods) {
    pod.readmit = true;
    pod.init_done = false;
  }
}

void KubeletModel::Bury() {
  std::erase_if(pods, [this](const Pod& pod) {
    return !pod.recorded && !pod.owes && hardware_.HeldBy(pod.uid).empty();
  });
}

}  // namespace switchyard::enforce_sim
