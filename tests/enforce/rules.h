// SPDX-License-Identifier: Apache-2.0
#pragma once

// The invariants, judged by what the models know to be true and never by the Enforcer's word: at
// each call that touches hardware or journal, after each grant and start, and after each operation.
// The one thing asked of the Enforcer is what it believes of a partition, to excuse what nobody
// could have known: a change of the fabric made by somebody else that it has not read yet.

#include <array>
#include <map>
#include <set>

#include "tenancy/enforcer.h"
#include "tests/enforce/fabric_model.h"
#include "tests/enforce/hardware.h"
#include "tests/enforce/journal_model.h"
#include "tests/enforce/kubelet_model.h"

namespace switchyard::enforce_sim {

// Who moves the Enforcer at this moment.
enum class Cause : std::uint8_t {
  kObserving,
  kAllocate,
  kUndo,
  kReconcile,
  kRelease,
  kForce,
  kGiveBack,
  kStart,
  kDryRun,
  kDrain,
};

class Rules {
 public:
  Rules(Stage& stage, Hardware& hardware, FabricModel& fabric, JournalModel& journal,
        KubeletModel& kubelet);

  // What was told to the Enforcer: processes (those of `asked` that may be held), kubelet's list.
  void ToldOfProcesses(fabric::ModuleSet asked, fabric::ModuleSet held);
  void ToldOfPods(std::map<int, fabric::ModuleSet> pods, std::int64_t began, bool whole);
  void NothingTold();  // a new agent

  // Before an operation of the Enforcer; `pod`: for whom (uid), 0: nobody.
  void Begin(Cause cause, int pod);
  // Somebody has what somebody has at this moment.
  void Touch();
  // How long nobody has had any of these.
  [[nodiscard]] std::int64_t IdleMs(fabric::ModuleSet modules) const;
  void AfterGrant(const Pod& pod, fabric::ModuleSet modules, const tenancy::Acquired& acquired);
  // After a reboot kubelet found all devices of the pod healthy.
  void AfterReadmission(const Pod& pod);
  void AfterStart(const Pod& pod, const Container& container);
  void Always();
  // Of tenancies, as the Enforcer has seen them before a pass of its reconciler; and after a pass
  // in which everything could be written.
  struct Seen {
    fabric::ModuleSet lost;
    fabric::ModuleSet active;
  };
  [[nodiscard]] Seen SeenTenancies() const;
  void Wrote(const Seen& seen);
  // The disk lost what was known of these; whatever is active of them is nobody's.
  void Orphan(fabric::ModuleSet modules);
  // The operator takes these from whoever does not hold them.
  void Revoke(fabric::ModuleSet modules);
  // Partitions that nobody of ours answers for.
  [[nodiscard]] fabric::ModuleSet FoundModules() const;

  tenancy::Enforcer* enforcer = nullptr;  // null: the agent is down
  tenancy::BootId boot;
  std::int64_t grace_ms = 60'000;
  bool answer_waits = false;       // the answer that is delivered says that a list is waited for
  bool list_read = false;          // by this agent
  std::set<std::uint64_t> undone;  // tenancies of requests that were refused later

  // Somebody else changed it, and the Enforcer has not read that yet.
  [[nodiscard]] bool Unseen(const FabricModel::Row& row) const;

 private:
  using Row = FabricModel::Row;
  using TenancyRecord = tenancy::TenancyRecord;
  void OnActivate(const Row& row);
  void OnDeactivate(const Row& row);
  void OnLate(const Row& row, bool active);
  // ---- rules_list.cpp
  void OnList(std::span<const int> ids);
  void LeftOut(const Row& row, fabric::ModuleSet sent);
  void Revived(const Row& row);
  // ----
  void OnErase(std::uint64_t id);
  void OnWrite(const tenancy::TenancyRecord& record);
  void OnAdopt(const tenancy::TenancyRecord& record);
  // Active ones that were found and have a tenancy by now are ours to clean up.
  void TakeOver();
  void OnRelease(const tenancy::TenancyRecord& record);
  // The Enforcer takes its id for another set's.
  [[nodiscard]] bool Renumbered(const Row& row) const;
  // The Enforcer takes it for active.
  [[nodiscard]] bool Believed(const Row& row) const;
  // The same of a set that need not be in the table any more.
  [[nodiscard]] bool BelievesIn(fabric::ModuleSet modules) const;
  [[nodiscard]] std::string Who(fabric::ModuleSet modules) const;

  Stage& stage_;
  Hardware& hardware_;
  FabricModel& fabric_;
  JournalModel& journal_;
  KubeletModel& kubelet_;
  Cause cause_ = Cause::kObserving;
  int pod_ = 0;
  std::map<std::uint64_t, tenancy::TenancyState> before_;  // the journal when it began
  std::array<std::int64_t, fabric::kMaxModule + 1> last_had_{};
  // Since when each view, as told to this agent, has had nobody on a module; kNever: it has.
  std::array<std::int64_t, fabric::kMaxModule + 1> free_by_processes_{};
  std::array<std::int64_t, fabric::kMaxModule + 1> free_by_pods_{};
  std::int64_t last_list_ = 0;
  std::map<int, fabric::ModuleSet> told_;  // by the last listing: whose pods have what
};

}  // namespace switchyard::enforce_sim
