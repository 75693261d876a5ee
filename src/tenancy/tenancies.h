// SPDX-License-Identifier: Apache-2.0
#pragma once

// The core's three entries: prefer, acquire, release. It alone holds the fabric's reader and calls
// the planner; src/kube translates to and from them, the agent drives the Refresh functions. Any
// thread. Prefer never waits for Fabric Manager: it uses the last list read. Neither does Acquire,
// but in `enforce`, where it is bounded (enforcer.h).

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/event.h"
#include "base/host_root.h"
#include "base/pci_address.h"
#include "base/status.h"
#include "fabric/fabric_control.h"
#include "fabric/fabric_reader.h"
#include "fabric/module_map.h"
#include "fabric/partition_table.h"
#include "fabric/planner.h"
#include "pci/inventory.h"
#include "store/store.h"
#include "tenancy/assignments.h"
#include "tenancy/enforcer.h"
#include "tenancy/grant.h"
#include "tenancy/preference.h"

namespace switchyard::tenancy {

enum class FabricMode { kOff, kAdvise, kEnforce };
[[nodiscard]] absl::string_view FabricModeName(FabricMode mode);

struct Options {
  HostRoot host_root;
  FabricMode mode = FabricMode::kOff;
  fabric::Policy policy = fabric::Policy::kPack;
  std::vector<std::string>
      module_map_files;          // read at every fabric refresh; absent ones are normal
  EnforcerOptions enforce = {};  // in enforce; an unknown boot is read from the host root
};

// Everything borrowed must outlive the Tenancies. `reader` and `store` may be null (fabric off; no
// state).
struct Parts {
  Clock* clock = nullptr;
  EventSink* events = nullptr;
  store::Store* store = nullptr;
  fabric::FabricReader* reader = nullptr;
  // In enforce only: the same Fabric Manager as `reader`, for changes; and see EnforcerParts.
  fabric::FabricControl* control = nullptr;
  HolderSource* holders = nullptr;  // null: the processes of the host root
  std::function<std::string(absl::string_view cgroup)> who = {};
  std::function<bool()> restart_is_warm = {};
};

// What operators see of the fabric: one consistent copy.
struct FabricView {
  bool known = false;  // a list was read, now or before
  bool up = false;     // the last read succeeded
  std::string error;   // why not
  absl::Time read_at;  // of the list
  fabric::PartitionTable table;
  fabric::ModuleMap map;
  fabric::ModuleSet busy;               // by the assignment view and our own grants
  std::vector<std::string> map_errors;  // unusable files and contradictions
};

class Tenancies {
 public:
  // Loads what is remembered (module map, partition list).
  Tenancies(Options options, Parts parts);
  ~Tenancies();

  // kubelet's GetPreferredAllocation. Never fails: an empty preference has its reason.
  [[nodiscard]] Preference Prefer(std::span<const PciAddress> available,
                                  std::span<const PciAddress> must_include, int size);

  // Resolves each device from sysfs at this moment. Refuses duplicates (kInvalidArgument), devices
  // that are gone (kNotFound) or not ready (kFailedPrecondition), each with a message that says
  // what to do. In advise, GPUs that are no partition are granted with a warning event; in enforce
  // they become one active partition of one tenancy or are refused (Enforcer::Acquire), and
  // NVSwitches are granted as in every mode. `asked`: monotonic, since when kubelet waits
  // (Admission); none: since now.
  [[nodiscard]] Result<Grant> Acquire(std::span<const PciAddress> devices,
                                      std::optional<absl::Duration> asked = std::nullopt);

  // Takes back a grant that was not handed over after all (something later in the same Allocate
  // failed). An unknown id is fine.
  void Release(std::uint64_t grant_id);

  // Before a container starts with these devices, also again after a reboot. An error keeps it from
  // starting; kubelet tries again.
  [[nodiscard]] Status PreStart(std::span<const PciAddress> devices);

  // The devices as last scanned: health, NUMA nodes, shared groups.
  void SetInventory(std::shared_ptr<const pci::Inventory> inventory);

  // Reads map files, NVML and FM once and remembers what it learned. Blocks up to the reader's
  // deadline (a call each for FM and NVML); one caller. In off it does nothing. Events, each only
  // when something changed: see fabric_state.h.
  void RefreshFabric();

  // Reads the assignment view, unless an admission is running (then false: try again soon).
  // kubelet's List must not run while an Allocate is in flight (kubernetes#137534), so an admission
  // that comes meanwhile waits for it. A view that can't be read leaves the former one in force and
  // is reported once (events assignments_unreadable, assignments_readable). One caller.
  bool RefreshAssignments(AssignmentSource& source);

  // Held by a kubelet call (GetPreferredAllocation, Allocate) from its first to its last line.
  class Admission;
  [[nodiscard]] Admission BeginAdmission();

  [[nodiscard]] FabricView View() const;

  // ---- enforce only; in other modes they do nothing --------------------------------------------
  // Whom to ask for one owner at Acquire. Before the first Acquire.
  void SetAssignmentSource(AssignmentSource* source);
  // Releases, adopts, activates again and reports, by the views of now. After each refresh.
  void Reconcile();
  // Devices that kubelet must not be offered as Healthy, each with the reason.
  [[nodiscard]] BlockedDevices Blocked() const;
  // OK: Fabric Manager answers, and partitions can be changed.
  [[nodiscard]] Status FabricStatus() const;
  // kFailedPrecondition: the journal is unusable (a newer version, no state); nothing is granted.
  [[nodiscard]] Status JournalStatus() const;
  // For operators. kFailedPrecondition in other modes.
  [[nodiscard]] Status Drain(bool on);
  [[nodiscard]] Status ReleaseByOperator(std::uint64_t tenancy, bool force);
  [[nodiscard]] Result<std::vector<PlannedAction>> PlanReconcile();
  [[nodiscard]] std::optional<EnforceView> Enforced() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class Tenancies::Admission {
 public:
  Admission(absl::Mutex& mutex, absl::Duration asked) : mutex_(&mutex), asked_(asked) {
    mutex_->ReaderLock();
  }
  Admission(Admission&& other) noexcept
      : mutex_(std::exchange(other.mutex_, nullptr)), asked_(other.asked_) {}
  ~Admission() {
    if (mutex_ != nullptr) mutex_->ReaderUnlock();
  }

  // Monotonic: when it began to wait.
  [[nodiscard]] absl::Duration asked() const { return asked_; }

 private:
  absl::Mutex* mutex_;
  absl::Duration asked_;
};

}  // namespace switchyard::tenancy
