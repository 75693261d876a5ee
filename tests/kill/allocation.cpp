// SPDX-License-Identifier: Apache-2.0
// One pod that asks for GPUs, and what is done to the agent meanwhile.
#include <algorithm>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/kill/run.h"

namespace switchyard::kill {
namespace {

using sim::FabricManager;
using sim::FabricManagerFaults;
using sim::WireCall;
using Hang = FabricManagerFaults::Hang;

// Between two looks at whether the admission is over, which nobody needs to wait for then.
constexpr absl::Duration kLook = absl::Milliseconds(1);

struct Weight {
  During what;
  int percent;
};
constexpr Weight kDuring[] = {
    {During::kAnyTime, 12},   {During::kActivateLost, 3}, {During::kDeactivateLost, 4},
    {During::kChangeLate, 6}, {During::kChangeSlow, 4},   {During::kListed, 2},
    {During::kPreStart, 4},   {During::kWarm, 2},         {During::kCold, 1},
    {During::kOutage, 1},     {During::kKubelet, 2},
};

During Draw(enforce_sim::Random& random) {
  int left = random.Below(100);
  for (const auto& [what, percent] : kDuring) {
    if (left < percent) return what;
    left -= percent;
  }
  return During::kNothing;
}

// What Fabric Manager must do for it.
FabricManagerFaults FaultsOf(During what, enforce_sim::Random& random) {
  FabricManagerFaults faults;
  switch (what) {
    case During::kActivateLost:
      faults.hang = Hang::kActivate;
      break;
    case During::kDeactivateLost:
      faults.hang = Hang::kDeactivate;
      break;
    case During::kChangeLate:
      faults.late_changes = true;
      break;
    case During::kChangeSlow:
      // Longer than a start; less than fabric.timeout, after which it may not happen any more.
      faults.change_time = absl::Milliseconds(random.Between(200, 400));
      break;
    case During::kListed:
      faults.hang = Hang::kList;
      break;
    default:
      // Longer calls, so that more kills land in one.
      if (random.Percent(25)) faults.latency = absl::Milliseconds(random.Between(1, 15));
      if (random.Percent(25)) faults.change_time = absl::Milliseconds(random.Between(1, 60));
  }
  return faults;
}

}  // namespace

void Run::MakeRoom(int size) {
  if (random_.Percent(70)) tenants_.EndLingering();
  if (random_.Percent(50)) {
    for (const std::string& pod : tenants_.Pods(/*only_cut=*/true)) tenants_.Remove(pod, false);
  }
  while (!tenants_.Fits(size)) {
    std::vector<std::string> pods = tenants_.Pods();
    if (pods.empty()) return tenants_.EndLingering();
    // One that lingers is in the way of whoever comes next.
    tenants_.Remove(random_.Of(pods), random_.Percent(8));
  }
}

void Run::Allocation() {
  const int draw = random_.Below(100);
  const int size = draw < 40 ? 1 : draw < 70 ? 2 : draw < 92 ? 4 : 8;
  MakeRoom(size);
  // Few names, so that pods come again under a name that was there before.
  sim::PodSpec pod;
  do {
    pod.name = absl::StrCat("vm-", next_pod_++ % 12);
  } while (std::ranges::count(tenants_.Pods(), pod.name) != 0);
  pod.containers.push_back({"compute", false, false, {{agent_.Resource(), size}}});

  const During what = Draw(random_);
  const FabricManagerFaults faults = FaultsOf(what, random_);
  node_.fm().SetFaults(faults);
  story_.Tell("pod ", pod.name, " asks for ", size);
  ++story_.tally.allocations;
  cold_ = false;
  sim::PodStatus status;
  Admission admission;
  admission.activates_before = node_.fm().calls()[WireCall::kActivate];
  admission.pre_starts_before = node_.kubelet().calls().counts().pre_start;
  admission.length = usual_ * 1.2 + 4 * faults.latency + faults.change_time;
  const absl::Time began = absl::Now();
  std::thread thread([&] {
    status = node_.kubelet().AddPod(pod);
    admission.done.Notify();
  });
  Disturb(what, admission);
  node_.fm().SetFaults({});
  thread.join();
  const bool plain =
      faults.latency == absl::ZeroDuration() && faults.change_time == absl::ZeroDuration();
  if (what == During::kNothing && plain && status.admitted)
    usual_ = 0.8 * usual_ + 0.2 * (absl::Now() - began);

  if (!status.admitted) {
    story_.Tell("pod ", pod.name, " is refused: ", status.reason, ": ", status.message);
    if (what != During::kNothing) return;
    ++story_.tally.refused_undisturbed;
    // Mostly since an outcome is not known yet: without a pause there would be little else to see.
    for (int i = 0; i < 7; ++i) AwaitProbe();
    return;
  }
  ++story_.tally.admitted;
  tenants_.Add(pod.name, status);
  if (cold_) tenants_.Cut(pod.name);
}

bool Run::AwaitHeldCall(const Admission& admission) {
  while (!node_.fm().AwaitHeldCall(kLook)) {
    if (admission.done.HasBeenNotified()) return false;
  }
  return true;
}

bool Run::AwaitActivateCall(const Admission& admission) {
  while (!node_.fm().AwaitCalls(WireCall::kActivate, admission.activates_before + 1, kLook)) {
    if (admission.done.HasBeenNotified()) return false;
  }
  return true;
}

bool Run::AwaitPreStartCall(const Admission& admission) {
  const auto called = [&] {
    return node_.kubelet().calls().counts().pre_start > admission.pre_starts_before;
  };
  while (!node_.kubelet().WaitFor(called, kLook)) {
    if (admission.done.HasBeenNotified()) return false;
  }
  return true;
}

void Run::Disturb(During what, const Admission& admission) {
  switch (what) {
    case During::kNothing:
      return;
    case During::kAnyTime:
      Sleep(admission.length);
      return Kill("at any time of an admission");
    case During::kActivateLost:
      if (AwaitHeldCall(admission)) Kill("activate was asked for, and is not done");
      return;
    case During::kDeactivateLost:
      if (AwaitHeldCall(admission)) Kill("deactivate was asked for, and is not done");
      return;
    case During::kChangeLate:
      if (AwaitHeldCall(admission)) Kill("a change was asked for, and is done afterwards");
      return;
    case During::kChangeSlow:
      if (AwaitActivateCall(admission)) Kill("activate was asked for, and takes its time");
      return;
    case During::kListed:
      if (AwaitActivateCall(admission) && AwaitHeldCall(admission))
        Kill("the list was asked for after a change");
      return;
    case During::kPreStart:
      if (!AwaitPreStartCall(admission)) return;
      Sleep(absl::Milliseconds(2));
      return Kill("a container was about to start");
    case During::kWarm:
      if (dirty_) return;
      Sleep(admission.length);
      return RestartFabricManager(FabricManager::Kind::kWarm, "during an admission");
    case During::kCold:
      Sleep(admission.length);
      cold_ = true;
      return RestartFabricManager(FabricManager::Kind::kCold, "during an admission");
    case During::kOutage:
      Sleep(admission.length);
      story_.Tell("Fabric Manager can't be reached for a moment");
      node_.fm().Stop();
      Sleep(absl::Milliseconds(50));
      return Check(node_.fm().Start(), Wrong::kLost);
    case During::kKubelet:
      Sleep(admission.length);
      return RestartKubelet("during an admission");
  }
}

}  // namespace switchyard::kill
