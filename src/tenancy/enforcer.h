// SPDX-License-Identifier: Apache-2.0
#pragma once

// The actuator of `enforce`: owns ledger and journal, alone changes partitions, and carries out
// what the pure functions (admit.h, reconcile.h) decide. Journal before hardware, every change of
// the fabric verified by the list that comes back, nothing taken away that may be held. Any thread,
// one step at a time behind one lock; every call to the outside is one call of an abstract part,
// and what is in memory only (timers) may be lost at each of them.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/event.h"
#include "fabric/fabric_control.h"
#include "fabric/module_map.h"
#include "fabric/partition_table.h"
#include "tenancy/assignments.h"
#include "tenancy/board.h"
#include "tenancy/enforce_view.h"
#include "tenancy/holder_source.h"
#include "tenancy/journal.h"
#include "tenancy/record.h"

namespace switchyard::tenancy {

struct EnforcerOptions {
  absl::Duration wait = absl::Seconds(5);               // allocate.wait
  absl::Duration grace = absl::Seconds(60);             // tenancy.grace
  absl::Duration fabric_timeout = absl::Seconds(15);    // of one call; of all in one Acquire
  absl::Duration look_again = absl::Milliseconds(250);  // at holders, while waiting for one to exit
  BootId boot;                                          // of this boot; unknown: nothing is granted
  // Tenancies of a former boot are activated by Reconcile, not by PreStart: for consumers whose
  // virtual machine is built before PreStartContainer (Kata).
  bool reactivate_at_start = false;
};

// Borrowed; must outlive the Enforcer.
struct EnforcerParts {
  Clock* clock = nullptr;
  EventSink* events = nullptr;
  Journal* journal = nullptr;  // null: no state can be kept, so nothing is granted or released
  fabric::FabricControl* fabric = nullptr;
  HolderSource* holders = nullptr;
  AssignmentSource* assignments = nullptr;  // may come later: SetAssignmentSource
  // A holder's cgroup in words ("pod default/a"), empty if it is none's; may be null.
  std::function<std::string(absl::string_view cgroup)> who;
  // Whether Fabric Manager on this node restarts with its state, as it is now: asked when it has
  // refused to tell its list, within a step of ObserveFabric. Null: it does not.
  std::function<bool()> restart_is_warm;
};

struct TenancyRequest {
  std::vector<TenancyDevice> devices;  // GPUs, each once, as they are now
  std::optional<Owner> owner;          // none: learned from the assignment view
  bool until_released = false;         // see TenancyRecord
  // Since when (monotonic) somebody waits for the answer; none: since now.
  std::optional<absl::Duration> asked;
};

struct Acquired {
  std::uint64_t tenancy = 0;
  int partition = 0;
  bool begun = false;  // by this request; false: one that was there is granted again
  absl::Duration by;   // monotonic: when whoever asked must have an answer
};

class Enforcer {
 public:
  Enforcer(EnforcerOptions options, EnforcerParts parts);
  ~Enforcer();

  // Reads the journal. Once, before anything else. kFailedPrecondition: written by a newer
  // version. After an error nothing is granted or released, and every later call says why.
  Status Load();
  void SetAssignmentSource(AssignmentSource* source);

  // ---- what was seen ---------------------------------------------------------------------------
  void ObserveBoard(Board board, std::shared_ptr<const fabric::ModuleMap> map);
  // Before reading Fabric Manager's list: what to give ObserveFabric with the answer, so that a
  // list from before one of our own changes is not taken for news.
  [[nodiscard]] std::uint64_t FabricGeneration();
  // An error is news too: down, wrong mode, or waiting for the active list after a warm restart,
  // which is answered at once.
  void ObserveFabric(const Result<fabric::FabricList>& list, std::uint64_t generation);
  // A remembered list: known, but not up.
  void ObserveRememberedList(const fabric::FabricList& list);
  // `read_started`: monotonic. Learns owners.
  void ObserveAssignments(AssignmentView view, absl::Duration read_started);

  // ---- requests --------------------------------------------------------------------------------
  // Makes exactly these devices one active partition of one tenancy, or refuses: everything that
  // is not certain is refused. Answers within `wait` and `fabric_timeout` together, however many
  // changes of the fabric it takes, and waits for locks, holders and owners no longer than `wait`;
  // what Fabric Manager does later is caught up by Reconcile. Codes:
  //   kInvalidArgument     no partition is exactly these devices (the nearest are named)
  //   kFailedPrecondition  unmapped GPU, wrong mode, dirty fabric, unusable journal, draining
  //   kUnavailable         Fabric Manager is down, or the outcome of an earlier change is not known
  //   kAlreadyExists       somebody has one of these GPUs (named: owner, holder, partition)
  //   and what FabricControl says
  [[nodiscard]] Result<Acquired> Acquire(const TenancyRequest& request);
  // Takes back what Acquire has just begun (something later in the same request failed). Never a
  // held device: what can't be released now, or not before `acquired.by`, is left to Reconcile. An
  // unknown tenancy is fine.
  void Undo(const Acquired& acquired);
  // The owner gives it back (claims). An unknown owner is fine; held is kAlreadyExists.
  [[nodiscard]] Status ReleaseOwner(const Owner& owner);
  // By hand. Without `force` like Reconcile: both views must agree, for longer than the grace.
  // With it without grace and without kubelet's word, but never a held device. kNotFound.
  [[nodiscard]] Status ReleaseById(std::uint64_t tenancy, bool force);
  // A container with these devices is about to start: OK if they lie inside one live tenancy whose
  // partition is active, which is activated from the journal after a reboot. Idempotent.
  [[nodiscard]] Status PreStart(std::span<const TenancyDevice> devices);
  // At once, and over restarts. An error: at once, and perhaps only until the next start.
  [[nodiscard]] Status Drain(bool on);

  // ---- catching up -----------------------------------------------------------------------------
  // Looks at holders, decides, and acts. After each observation, and whenever.
  void Reconcile();
  // The same without acting. Timers are read, not moved.
  [[nodiscard]] std::vector<PlannedAction> PlanReconcile();

  // ---- what is so ------------------------------------------------------------------------------
  // Devices of the board that kubelet must not hand out now, each with the reason.
  [[nodiscard]] BlockedDevices Blocked() const;
  [[nodiscard]] fabric::ModuleSet BusyModules() const;  // of live tenancies
  // Acquire would refuse them now though kubelet may offer them: held open at the last look while
  // kubelet lists nobody for them (it lost its checkpoint, a container outlived its pod), or the
  // outcome of their last change is not known.
  [[nodiscard]] fabric::ModuleSet ToAvoid() const;
  // OK: Fabric Manager answers, and partitions can be changed.
  [[nodiscard]] Status FabricStatus() const;
  // OK: the journal can be read and written.
  [[nodiscard]] Status JournalStatus() const;
  // By the last list, our own changes included; null until one is known.
  [[nodiscard]] std::shared_ptr<const fabric::PartitionTable> Table() const;
  [[nodiscard]] EnforceView View() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace switchyard::tenancy
