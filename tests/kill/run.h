// SPDX-License-Identifier: Apache-2.0
#pragma once

// One run: allocations, most of them on their own, some with a SIGKILL of the agent at a chosen or
// a random moment, some with a restart of Fabric Manager or kubelet in their middle, and between
// them deletions, restarts of containers, deaths while nothing happens, deaths while starting.
// After each everything is up again, and is audited. The seed decides what is done, and when by
// intention; how far the agent is at that moment is the machine's.
//
// One thread, and one more while a pod is admitted.

#include <cstdint>
#include <functional>
#include <string>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "sim/node/sim_node.h"
#include "tests/enforce/random.h"
#include "tests/kill/agent.h"
#include "tests/kill/story.h"
#include "tests/kill/tenants.h"

namespace switchyard::kill {

// What happens while a pod is admitted.
enum class During : std::uint8_t {
  kNothing,
  // Kills of the agent:
  kAnyTime,         // after a random part of an admission's usual length
  kActivateLost,    // Fabric Manager has been asked to activate, and does not do it
  kDeactivateLost,  // the same of what is in the way
  kChangeLate,      // it has been asked for a change, and does it after the agent's death
  kChangeSlow,      // ..., and does it once the next agent runs
  kListed,          // asked for the list after a change
  kPreStart,        // asked by kubelet whether the container may start
  // Restarts, at a random time as well:
  kWarm,
  kCold,
  kOutage,  // Fabric Manager can't be reached for a moment
  kKubelet,
};

class Run {
 public:
  Run(sim::SimNode& node, Agent& agent, Story& story, std::uint64_t seed);

  // This many allocations and the end, in which everything is given back; stops at the first thing
  // that is wrong.
  void Play(int allocations);

 private:
  struct Admission {
    absl::Notification done;
    int activates_before = 0;
    std::int64_t pre_starts_before = 0;
    absl::Duration length;  // to be expected
  };

  void Allocation();
  void MakeRoom(int size);
  void Disturb(During what, const Admission& admission);
  // Each: it came; or the admission is over without it.
  bool AwaitHeldCall(const Admission& admission);
  bool AwaitActivateCall(const Admission& admission);
  bool AwaitPreStartCall(const Admission& admission);
  void RestartContainers();
  void DieBetween();
  void DieInAPass();
  void DieSendingTheList();
  void DieInCalm();
  void End();

  // Everything runs again, whatever was done to it; then the audit.
  void Recover();
  void BringUp();
  void LookAtTheFabric();
  void StartWhatWaits();
  void Audit();
  // Active, and of nobody by what is seen from outside.
  [[nodiscard]] std::set<int> Stale() const;
  void AwaitProbe();

  void Kill(absl::string_view moment);
  void RestartFabricManager(sim::FabricManager::Kind kind, absl::string_view when);
  void RestartKubelet(absl::string_view when);
  void Sleep(absl::Duration at_most);  // a random part of it
  void Check(const Status& status, Wrong wrong);

  sim::SimNode& node_;
  Agent& agent_;
  Story& story_;
  enforce_sim::Random random_;
  Tenants tenants_;
  int next_pod_ = 0;
  // Since a cold restart some tenancies are without their partitions. A warm one then is left out:
  // an agent that was killed in between can't tell them from those that still have theirs.
  bool dirty_ = false;
  bool cold_unseen_ = false;                        // a cold restart, by the agent
  bool cold_ = false;                               // in the admission under way
  absl::Duration usual_ = absl::Milliseconds(20);   // length of an admission
  absl::Duration start_ = absl::Milliseconds(200);  // of the agent's start
};

}  // namespace switchyard::kill
