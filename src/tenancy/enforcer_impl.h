// SPDX-License-Identifier: Apache-2.0
#pragma once

// The inside of the Enforcer, for its .cpp files only. `step` is held over a whole step, calls to
// the outside included; `memory` guards what is known and is given up around each of those calls
// (Outside), so that whoever only looks never waits for hardware. A step that is ended by an
// exception (tests) leaves both unlocked.

#include <array>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "tenancy/admit.h"
#include "tenancy/enforcer.h"
#include "tenancy/ledger.h"
#include "tenancy/listing.h"
#include "tenancy/reconcile.h"
#include "tenancy/refusal.h"
#include "tenancy/step_lock.h"

namespace switchyard::tenancy {

class Enforcer::Impl {
 public:
  Impl(EnforcerOptions options, EnforcerParts parts)
      : options_(options), parts_(std::move(parts)) {}

  // ---- locks ---------------------------------------------------------------------------------
  class Step;
  class Outside;
  class Bounded;

  // ---- enforcer.cpp: what was seen -------------------------------------------------------------
  Status Load();
  void ObserveBoard(Board board, std::shared_ptr<const fabric::ModuleMap> map);
  void CompareMap();
  void ObserveFabric(const Result<fabric::FabricList>& list, std::uint64_t generation);
  void ObserveRememberedList(const fabric::FabricList& list);
  void ObserveAssignments(AssignmentView view, absl::Duration read_started);

  // ---- enforcer_acquire.cpp --------------------------------------------------------------------
  Result<Acquired> Acquire(const TenancyRequest& request);

  // ---- enforcer_release.cpp --------------------------------------------------------------------
  void Undo(const Acquired& acquired);
  Status ReleaseOwner(const Owner& owner);
  Status ReleaseById(std::uint64_t tenancy, bool force);
  Status PreStart(std::span<const TenancyDevice> devices);
  Status Drain(bool on);

  // ---- enforcer_reconcile.cpp ------------------------------------------------------------------
  void Reconcile();
  std::vector<PlannedAction> PlanReconcile();

  // ---- enforcer_view.cpp -----------------------------------------------------------------------
  BlockedDevices Blocked();
  EnforceView View();

 private:
  friend class Enforcer;
  struct Held {
    fabric::ModuleSet modules;  // that may be held
    pci::Holders holders;       // of the last look; empty without one
    Status status;              // why nobody can tell; OK: somebody could
  };
  // A device, and the modules that are in use if it is.
  struct Suspect {
    PciAddress address;
    fabric::ModuleSet modules;
  };
  // Owners asked in one request.
  using Answers = std::vector<std::pair<Owner, Possession>>;

  // Memory and step are held, memory is given up for each call.
  // ---- enforcer_journal.cpp --------------------------------------------------------------------
  // Journal, then ledger. An error leaves the ledger as it was.
  Status Save(TenancyRecord record);
  Status Erase(std::uint64_t id);
  // Records that may be in the journal though the ledger never had them.
  Status EraseStrays();
  [[nodiscard]] bool IsUnsaved(std::uint64_t id) const;
  // Ends all doubt about what the journal has.
  Status SaveUnsaved();
  void ReportJournal(const Status& status);
  // Foreign partitions of now, in the journal if they changed.
  Status SaveForeign();

  // ---- enforcer_change.cpp ---------------------------------------------------------------------
  // One change of the fabric. OK: it happened, and the new list is known.
  Status Change(absl::string_view what, const fabric::Partition& partition, bool active);
  void TakeList(fabric::FabricList list, absl::Duration began);
  void RemakeTable();
  // A change of this tenancy's partition is asked for; its outcome is in doubt until Answered.
  void Asking(std::uint64_t id);
  // It was the answer to the last one. Earlier ones may still happen.
  void Answered(std::uint64_t id, const Status& changed);
  // From activating or active, written or not, to active. `record` is in the ledger or new.
  Result<int> Establish(TenancyRecord record);
  // To gone. `free`: modules that are known not to be held in this step.
  Status End(std::uint64_t id, fabric::ModuleSet free, absl::string_view why);
  Status Forget(std::uint64_t id, absl::string_view why);
  Status DeactivateForeign(fabric::ModuleSet modules, fabric::ModuleSet free);

  // ---- enforcer_holders.cpp --------------------------------------------------------------------
  // Devices that stand for these modules: by the board, by what a tenancy of them was granted,
  // which holds whatever the module map says by now, and of modules that no GPU has, the GPUs
  // without one.
  [[nodiscard]] std::vector<Suspect> SuspectsOf(fabric::ModuleSet modules) const;
  [[nodiscard]] std::vector<PciAddress> AddressesOf(fabric::ModuleSet modules) const;
  // Processes that have one of these modules' devices open.
  Held Look(fabric::ModuleSet modules);
  // Whether the devices themselves say that somebody has them; added to `held`.
  void AskDevices(fabric::ModuleSet modules, Held& held);
  // Both.
  Held LookAndAsk(fabric::ModuleSet modules);
  // One view has these used, whoever asked: the grace time begins anew.
  void Contradict(fabric::ModuleSet used);
  Possession Ask(const Owner& owner, fabric::ModuleSet modules, Answers& answers);
  std::string HolderText(const Held& held, fabric::ModuleSet modules) const;

  // ---- enforcer_acquire.cpp --------------------------------------------------------------------
  std::optional<Refused> Gate() const;
  Result<fabric::ModuleSet> ModulesOf(std::span<const TenancyDevice> devices) const;
  Result<Acquired> CarryOut(const TenancyRequest& request, fabric::ModuleSet modules,
                            const Admission& admission, fabric::ModuleSet free, absl::Duration by);
  Result<Acquired> GrantAgain(const TenancyRequest& request, std::uint64_t id);
  // Whether there is time for another change of the fabric in this request.
  [[nodiscard]] Status TimeForAnother() const;
  Status Refuse(Refused refused);
  Status RefuseHeld(fabric::ModuleSet modules, const Held& held);

  // ---- enforcer_words.cpp ----------------------------------------------------------------------
  Status ExplainRefusal(const AdmitInput& in, const Admission& admission) const;
  Status ExplainHeld(fabric::ModuleSet modules, const Held& held) const;

  // ---- enforcer_reconcile.cpp ------------------------------------------------------------------
  ReconcileInput MakeInput(const Held& held, fabric::ModuleSet looked) const;
  // True if it was done: what stands in the way keeps it for the next pass.
  bool CarryOut(const Decision& decision, fabric::ModuleSet free);
  [[nodiscard]] bool IsOutdated(const Decision& decision) const;
  bool Adopt(const Decision& decision);
  void ReportOnce(const Decision& decision);
  void RememberLost(TenancyRecord record);
  void DropUsedLost(const Held& held, fabric::ModuleSet looked);
  // Since when an active partition of nobody has had no user by both views.
  void TrackForeign(const Decisions& decisions);
  // Tells once if tenancies are kept for long because kubelet need not know its pods yet.
  void TrackPodsUnknown(const Decisions& decisions);

  // ---- enforcer_restart.cpp --------------------------------------------------------------------
  // The answer to a Fabric Manager that waits after a warm restart.
  void SendActive();
  std::vector<int> ActiveToSend(bool& certain);
  [[nodiscard]] bool KnownInactive(const TenancyRecord& record) const;

  // ---- enforcer_change.cpp ---------------------------------------------------------------------
  [[nodiscard]] Watch& WatchOf(std::uint64_t id);
  [[nodiscard]] const Watch* FindWatch(std::uint64_t id) const;
  [[nodiscard]] bool Happened(const TenancyRecord& record, const Watch& watch) const;
  [[nodiscard]] bool IsUncertain(const TenancyRecord& record) const;
  [[nodiscard]] fabric::ModuleSet UncertainModules() const;
  [[nodiscard]] fabric::ModuleSet UnsettledModules() const;
  // Of foreign partitions whose deactivation may still happen.
  [[nodiscard]] fabric::ModuleSet DoubtfulModules() const;
  [[nodiscard]] fabric::ModuleSet DirtyModules() const;
  [[nodiscard]] std::uint64_t NewId();
  void Tell(absl::string_view name, Severity severity, std::string message,
            const TenancyRecord* record);

  const EnforcerOptions options_;
  const EnforcerParts parts_;
  StepLock step_;
  absl::Mutex memory_;

  // Everything below is guarded by memory_, and but for draining_ changed only within a step.
  AssignmentSource* assignments_ = nullptr;
  Status journal_ = absl::FailedPreconditionError("the journal was not read yet");
  bool journal_failing_ = false;  // the last write failed
  bool journal_lost_ = false;     // something in it could not be used
  Ledger ledger_;
  std::vector<Watch> watches_;
  fabric::ModuleSet held_unlisted_;  // see Enforcer::ToAvoid
  std::vector<std::uint64_t> strays_;
  std::vector<std::uint64_t> unsaved_;  // in the ledger otherwise than, perhaps, in the journal
  std::uint64_t last_id_ = 0;
  std::vector<fabric::ModuleSet> foreign_;  // as in the journal
  bool foreign_unsaved_ = false;            // its last write failed, so perhaps otherwise
  std::vector<std::pair<fabric::ModuleSet, absl::Time>> foreign_since_;
  std::vector<fabric::ModuleSet> lost_foreign_;
  // Foreign ones whose deactivation was asked for, or may have been before the start, and since
  // when nobody knows what came of it.
  std::vector<std::pair<fabric::ModuleSet, absl::Duration>> doubtful_;

  Board board_;
  std::shared_ptr<const fabric::ModuleMap> map_ = std::make_shared<const fabric::ModuleMap>();
  std::optional<fabric::FabricList> list_;
  std::shared_ptr<const fabric::PartitionTable> table_;  // null: no list is known
  bool up_ = false;
  bool ever_up_ = false;
  bool list_read_ = false;  // by this process, not remembered
  Status fabric_ = absl::UnavailableError("Fabric Manager was not read yet");
  std::uint64_t generation_ = 1;
  absl::Duration read_began_;  // of the read that is announced
  absl::Duration list_began_;  // of the list of now
  AssignmentView assigned_;
  Listing listing_;
  bool draining_ = false;
  bool was_dirty_ = false;
  std::optional<absl::Duration> pods_unknown_since_;  // and a tenancy is kept for that
  bool told_pods_unknown_ = false;
  std::vector<std::string> map_differs_;  // as told last
  std::vector<std::pair<std::uint64_t, Why>> reported_;

  std::array<std::uint64_t, kRefusals> refusals_{};
  std::map<absl::string_view, std::uint64_t> actions_;
  std::map<std::string, std::uint64_t> failures_;
  std::optional<absl::Duration> by_;  // when the request of this step must be answered
  absl::Duration longest_;            // change of the fabric in this request
  std::uint64_t activations_ = 0;
  std::uint64_t deactivations_ = 0;
};

class Enforcer::Impl::Step {
 public:
  Step(Impl& impl, absl::Duration timeout) ABSL_NO_THREAD_SAFETY_ANALYSIS : impl_(impl) {
    Take(timeout);
  }
  ~Step() { Give(); }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  [[nodiscard]] bool taken() const { return taken_; }
  void Take(absl::Duration timeout) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    taken_ = impl_.step_.LockFor(*impl_.parts_.clock, timeout);
    if (taken_) impl_.memory_.Lock();
  }
  void Give() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (!taken_) return;
    taken_ = false;
    impl_.memory_.Unlock();
    impl_.step_.Unlock();
  }

 private:
  Impl& impl_;
  bool taken_ = false;
};

// Around what of a step somebody waits for: all changes of the fabric in it are over at `by`.
class Enforcer::Impl::Bounded {
 public:
  Bounded(Impl& impl, absl::Duration by) : impl_(impl) {
    impl_.by_ = by;
    impl_.longest_ = absl::ZeroDuration();
  }
  ~Bounded() { impl_.by_.reset(); }
  Bounded(const Bounded&) = delete;
  Bounded& operator=(const Bounded&) = delete;

 private:
  Impl& impl_;
};

// Around a call of a part, within a step.
class Enforcer::Impl::Outside {
 public:
  explicit Outside(Impl& impl) ABSL_NO_THREAD_SAFETY_ANALYSIS : impl_(impl) {
    impl_.memory_.Unlock();
  }
  ~Outside() ABSL_NO_THREAD_SAFETY_ANALYSIS { impl_.memory_.Lock(); }
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;

 private:
  Impl& impl_;
};

}  // namespace switchyard::tenancy
