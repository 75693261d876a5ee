// SPDX-License-Identifier: Apache-2.0
#include "tests/kill/run.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace switchyard::kill {
namespace {

using sim::FabricManager;
using sim::FabricManagerFaults;
using sim::WireCall;
using Hang = FabricManagerFaults::Hang;

constexpr absl::Duration kPatience = Agent::kPatience;
// Until the reconciler has released what nobody has: the agent reads kubelet's list every 10 s, one
// that is younger than 10 s says nothing of a grant (kGrantSettles in tenancy/holdings.h), and two
// must agree.
constexpr absl::Duration kReleased = absl::Seconds(60);

}  // namespace

Run::Run(sim::SimNode& node, Agent& agent, Story& story, std::uint64_t seed)
    : node_(node), agent_(agent), story_(story), random_(seed), tenants_(node, story) {}

void Run::Play(int allocations) {
  constexpr int kCalmEvery = 200;
  // As each node has: without any, no agent may believe a list that lacks a pod.
  (void)node_.kubelet().AddPod({"kube-system", "daemon", {{"main", false, false, {}}}, {}});
  Recover();
  while (!story_.broken() && story_.tally.allocations < allocations) {
    const int admitted = story_.tally.admitted;
    Allocation();
    Recover();
    if (story_.broken()) return;
    if (random_.Percent(8)) RestartContainers();
    if (random_.Percent(3)) DieBetween();
    // Soon after a grant the agent reads kubelet's list; without one it may take 10 s.
    if (story_.tally.admitted > admitted && random_.Percent(4)) DieInAPass();
    if (random_.Percent(2)) DieSendingTheList();
    if (story_.tally.allocations % kCalmEvery == kCalmEvery / 2) DieInCalm();
  }
  if (!story_.broken()) End();
}

void Run::RestartContainers() {
  if (story_.broken()) return;
  std::vector<std::string> pods = tenants_.Pods();
  if (pods.empty()) return;
  const std::string pod = random_.Of(pods);
  story_.Tell("the containers of pod ", pod, " die and start again");
  tenants_.EndProcess(pod);
  std::thread restart([&] { (void)node_.kubelet().RestartContainers("default", pod); });
  if (random_.Percent(60)) {
    Sleep(usual_);
    Kill("a container was started again");
  }
  restart.join();
  Recover();
}

void Run::DieBetween() {
  if (story_.broken()) return;
  Sleep(absl::Milliseconds(100));
  Kill("between allocations");
  Recover();
}

// The reconciler passes when it has read kubelet's list.
void Run::DieInAPass() {
  if (story_.broken()) return;
  const auto lists = [this] { return node_.kubelet().calls().counts().pod_list; };
  const std::int64_t seen = lists();
  if (!node_.kubelet().WaitFor([&] { return lists() > seen; }, kPatience))
    return story_.Found(Wrong::kLost, "the agent does not read kubelet's list");
  Sleep(absl::Milliseconds(10));
  Kill("the reconciler passes");
  Recover();
}

void Run::DieSendingTheList() {
  if (story_.broken() || dirty_) return;
  FabricManagerFaults faults;
  faults.late_changes = random_.Percent(50);
  if (!faults.late_changes) faults.hang = Hang::kSetActivated;
  node_.fm().SetFaults(faults);
  RestartFabricManager(FabricManager::Kind::kWarm, "and is about to be told what was active");
  if (!node_.fm().AwaitHeldCall(kPatience))
    return story_.Found(Wrong::kLost, "Fabric Manager is not told what was active");
  Kill("the active partitions are sent");
  node_.fm().SetFaults({});
  Recover();
}

// Nobody asks for anything until the reconciler releases what nobody has; the agent dies while it
// does so.
void Run::DieInCalm() {
  if (story_.broken()) return;
  const std::vector<std::string> pods = tenants_.Pods();
  for (std::size_t i = 0; i < pods.size(); ++i) {
    if (i == 0 || random_.Percent(50)) tenants_.Remove(pods[i], false);
  }
  tenants_.EndLingering();
  story_.Tell("nobody asks for anything");
  FabricManagerFaults faults;
  faults.late_changes = random_.Percent(50);
  if (!faults.late_changes) faults.hang = Hang::kDeactivate;
  node_.fm().SetFaults(faults);
  if (!Stale().empty()) {
    if (!node_.fm().AwaitHeldCall(kReleased)) {
      return story_.Found(Wrong::kLeaked, absl::StrCat("partition ", *Stale().begin(),
                                                       " is of nobody, and is not released"));
    }
    Kill("the reconciler releases something");
  }
  node_.fm().SetFaults({});
  Recover();
}

void Run::End() {
  story_.Tell("everything is given back");
  for (const std::string& pod : tenants_.Pods()) tenants_.Remove(pod, false);
  tenants_.EndLingering();
  if (!node_.fm().AwaitActive({}, kReleased)) {
    for (const int id : node_.fm().active())
      story_.Found(Wrong::kLeaked, absl::StrCat("partition ", id, " stays active"));
  }
  const absl::Time began = absl::Now();
  Result<std::vector<ShownTenancy>> records = agent_.Tenancies();
  for (; records.ok() && !records->empty(); records = agent_.Tenancies()) {
    if (absl::Now() - began > kReleased) break;
    AwaitProbe();
  }
  if (story_.broken()) return;
  Check(agent_.Stop(), Wrong::kLost);
  Check(agent_.VerifyJournal(), Wrong::kLeaked);
  records = agent_.Tenancies();
  Check(records.status(), Wrong::kLeaked);
  if (!records.ok()) return;
  for (const auto& [modules, active] : *records) {
    story_.Found(Wrong::kLeaked,
                 absl::StrCat("the tenancy of modules ", absl::StrJoin(modules, ","),
                              " stays in the journal"));
  }
}

// ---- recovery ----------------------------------------------------------------------------------

void Run::Recover() {
  if (story_.broken()) return;
  if (!agent_.running()) BringUp();
  if (!node_.fm().AwaitServing(kPatience))
    story_.Found(Wrong::kLost, "Fabric Manager waits, and is not told what was active");
  if (!story_.broken()) Check(agent_.AwaitReady(), Wrong::kLost);
  if (dirty_ && !story_.broken()) LookAtTheFabric();
  if (!story_.broken()) StartWhatWaits();
  tenants_.StartProcesses();
  if (!story_.broken()) Audit();
}

// After a cold restart it is dirty until what was lost is forgotten.
void Run::LookAtTheFabric() {
  if (std::exchange(cold_unseen_, false)) {
    AwaitProbe();
    AwaitProbe();  // what followed from the one before is done
  }
  const Result<std::vector<ShownTenancy>> records = agent_.Tenancies();
  if (!records.ok()) return Check(records.status(), Wrong::kLost);
  dirty_ = !std::ranges::all_of(*records, &ShownTenancy::active);
}

void Run::BringUp() {
  if (random_.Percent(4) && !dirty_)
    RestartFabricManager(FabricManager::Kind::kWarm, "without an agent");
  if (random_.Percent(2)) RestartFabricManager(FabricManager::Kind::kCold, "without an agent");
  if (random_.Percent(3)) RestartKubelet("without an agent");
  while (!story_.broken()) {
    const absl::Time began = absl::Now();
    Check(agent_.Start(), Wrong::kLost);
    if (!story_.broken() && random_.Percent(12)) {
      Sleep(start_ * 1.2);
      Kill("at any time of its start");
      continue;
    }
    if (!story_.broken()) Check(agent_.AwaitReady(), Wrong::kLost);
    start_ = 0.8 * start_ + 0.2 * (absl::Now() - began);
    return;
  }
}

void Run::StartWhatWaits() {
  const absl::Time began = absl::Now();
  std::optional<std::string> waiting = tenants_.WaitingPod();
  for (; waiting; waiting = tenants_.WaitingPod()) {
    node_.kubelet().RetryStarts();
    if (!tenants_.WaitingPod()) return;
    if (absl::Now() - began > kPatience) return story_.Found(Wrong::kLost, *waiting);
    AwaitProbe();
  }
}

// The agent's next look at Fabric Manager: before it nothing has changed.
void Run::AwaitProbe() {
  const int next = node_.fm().calls()[WireCall::kListPartitions] + 1;
  (void)node_.fm().AwaitCalls(WireCall::kListPartitions, next, kPatience);
}

std::set<int> Run::Stale() const {
  std::set<int> stale = node_.fm().active();
  for (const Tenant& tenant : tenants_.all()) stale.erase(tenant.partition);
  return stale;
}

void Run::Audit() {
  tenants_.Audit();
  const std::set<int> before = Stale();
  if (before.empty() || story_.broken()) return;
  const Result<std::vector<ShownTenancy>> records = agent_.Tenancies();
  if (!records.ok()) return Check(records.status(), Wrong::kLost);
  const std::set<int> after = Stale();  // what is not among them was released meanwhile
  for (const int id : before) {
    const std::set<int> modules = tenants_.PartitionModules(id);
    if (!after.contains(id) || std::ranges::count(*records, modules, &ShownTenancy::modules) != 0)
      continue;
    story_.Found(Wrong::kLeaked,
                 absl::StrCat("partition ", id, " (modules ", absl::StrJoin(modules, ","),
                              ") is active, of no pod and of no tenancy"));
  }
}

// ---- deeds -------------------------------------------------------------------------------------

void Run::Kill(absl::string_view moment) {
  story_.Tell("SIGKILL: ", moment);
  ++story_.tally.kills;
  ++story_.tally.kills_by_moment[std::string(moment)];
  const Result<int> helpers = agent_.Kill();
  if (!helpers.ok()) return Check(helpers.status(), Wrong::kLeaked);
  story_.tally.helpers += *helpers;
}

void Run::RestartFabricManager(FabricManager::Kind kind, absl::string_view when) {
  const bool cold = kind == FabricManager::Kind::kCold;
  story_.Tell("Fabric Manager restarts ", cold ? "cold " : "warm ", when);
  ++story_.tally.fm_restarts;
  if (cold) tenants_.Cut();
  if (cold) dirty_ = cold_unseen_ = true;
  Check(node_.fm().Restart(kind), Wrong::kLost);
}

void Run::RestartKubelet(absl::string_view when) {
  story_.Tell("kubelet restarts ", when);
  ++story_.tally.kubelet_restarts;
  Check(node_.kubelet().Restart(), Wrong::kLost);
}

void Run::Sleep(absl::Duration at_most) {
  absl::SleepFor(at_most * (random_.Below(1000) / 1000.0));
}

void Run::Check(const Status& status, Wrong wrong) {
  if (!status.ok()) story_.Found(wrong, std::string(status.message()));
}

}  // namespace switchyard::kill
