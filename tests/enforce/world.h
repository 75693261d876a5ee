// SPDX-License-Identifier: Apache-2.0
#pragma once

// One run: a node of models, the Enforcer on it, and operations drawn by chance. Which faults exist
// is drawn once a run, so that some runs are nearly quiet and get far. After the operations the
// faults end, and what should be clean then is looked at. Everything follows from the seed.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fabric/partition_table.h"
#include "tests/enforce/rules.h"

namespace switchyard::enforce_sim {

struct BoardOfRun {
  std::string name;
  fabric::PartitionTable table;
};
// The published boards that are compiled in.
[[nodiscard]] const std::vector<BoardOfRun>& Boards();

class World {
 public:
  World(std::uint64_t seed, bool tracing);

  // Stops at the first broken rule.
  void Run(int operations);
  [[nodiscard]] const Stage& stage() const { return stage_; }
  [[nodiscard]] int operation() const { return operation_; }
  [[nodiscard]] int grants() const { return grants_; }
  [[nodiscard]] int crashes() const { return crashes_; }

 private:
  // What may go wrong in this run.
  struct Profile {
    bool crashes = false;
    bool fabric_fails = false;
    bool fabric_restarts = false;
    bool outsiders = false;
    bool journal_fails = false;
    bool journal_lost = false;
    bool kubelet_fails = false;
    bool checkpoint_lost = false;
    bool reboots = false;
    bool odd_processes = false;
    bool devices_vanish = false;
    bool map_breaks = false;
    bool operators = false;
    bool claims = false;
    bool delays = false;
  };
  struct PendingView {
    tenancy::AssignmentView view;
    absl::Duration began;
    std::map<int, fabric::ModuleSet> named;
  };
  struct PendingList {
    Result<fabric::FabricList> list;
    std::uint64_t generation = 0;
    std::int64_t read = 0;
  };

  // ---- world.cpp: the node, the agent, time
  void MakeNode();
  void MakeMap();
  void Step();
  void StartAgent();
  void KillAgent(const char* why);
  // False: the agent died meanwhile.
  template <typename Call>
  bool Ask(Cause cause, int pod, const Call& call);
  void Pass(std::int64_t ms);
  void Probe();
  void List();
  void Reconcile();
  void Turn(std::int64_t ms);
  void ShowBoard();
  void Deliver();
  void Collect();  // what became of ended containers

  // ---- pods.cpp
  void Admit();
  void HandOutTwice();
  [[nodiscard]] bool IsKnown(const Pod& pod, fabric::ModuleSet modules);
  [[nodiscard]] fabric::ModuleSet Healthy();
  std::optional<fabric::ModuleSet> Choose(int size, fabric::ModuleSet available);
  bool Allocate(Pod& pod, Container& container);
  void Undo(const Pod& pod, const tenancy::Acquired& acquired, fabric::ModuleSet modules);
  bool AdmitPod(Pod pod);
  void StartContainer();
  void Start(Pod& pod);
  void EndProcess();
  void DeletePod();
  void Forget(Pod& pod);

  // ---- claims.cpp
  void Prepare();
  void Unprepare(Pod& pod);
  void UnprepareOwed();
  [[nodiscard]] fabric::ModuleSet Unknowable() const;

  // ---- faults.cpp
  void FabricTrouble();
  void FabricRestart();
  [[nodiscard]] bool Knows(const fabric::PartitionTable* table) const;
  void Predecessor();
  void Outsider();
  void JournalTrouble();
  void LoseJournal();
  void KubeletTrouble();
  void RestartKubelet(bool incomplete);
  void DeviceTrouble();
  void MapTrouble();
  void StrayProcess();
  void Reboot();
  void Operator();

  // ---- ending.cpp
  void End();
  void EndFaults();
  void TakeTurns();
  void CheckNothingLeaked(const char* when);
  void CheckStarts();
  void CheckFreeCanBeHad(int tries, bool at_once);
  [[nodiscard]] bool BesideForeign(fabric::ModuleSet modules) const;
  void CheckDirty();

  Stage stage_;
  const BoardOfRun& board_;
  Profile profile_;
  Hardware hardware_;
  FabricModel fabric_;
  JournalModel journal_;
  KubeletModel kubelet_;
  Rules rules_;
  StorySink sink_;
  tenancy::EnforcerOptions options_;
  bool restart_is_warm_ = false;                 // Fabric Manager, as its configuration is now
  std::unique_ptr<tenancy::Enforcer> enforcer_;  // null: the agent is not running
  std::shared_ptr<const fabric::ModuleMap> map_ = std::make_shared<const fabric::ModuleMap>();
  std::optional<fabric::FabricList> remembered_;
  std::optional<PendingView> view_;
  std::optional<PendingList> list_;
  int incarnation_ = 0;
  int next_uid_ = 1;
  int operation_ = 0;
  int grants_ = 0;
  int crashes_ = 0;
  bool whole_told_ = true;  // since kubelet last knew only some of its pods
  bool quiet_ = false;      // nothing goes wrong any more
  std::string refusal_;     // of the last Allocate
};

template <typename Call>
bool World::Ask(Cause cause, int pod, const Call& call) {
  if (enforcer_ == nullptr) return false;
  rules_.Begin(cause, pod);
  try {
    call(*enforcer_);
  } catch (const Crash&) {
    KillAgent(nullptr);
    return false;
  }
  rules_.Begin(Cause::kObserving, 0);
  return true;
}

}  // namespace switchyard::enforce_sim
