// SPDX-License-Identifier: Apache-2.0
#include "tenancy/tenancies.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "tenancy/enforcement.h"
#include "tenancy/fabric_state.h"
#include "tenancy/holdings.h"
#include "tenancy/partition_check.h"
#include "tenancy/picture.h"
#include "tenancy/preference.h"
#include "tenancy/resolve.h"

namespace switchyard::tenancy {

absl::string_view FabricModeName(FabricMode mode) {
  switch (mode) {
    case FabricMode::kOff:
      return "off";
    case FabricMode::kAdvise:
      return "advise";
    case FabricMode::kEnforce:
      return "enforce";
  }
  return "off";
}

// Locks: `admission` is held over kubelet's calls and the reading of the view, `mutex` only to copy
// or swap pointers and to count; neither over a call to Fabric Manager.
struct Tenancies::State {
  State(Options o, Parts p)
      : options(std::move(o)),
        parts(p),
        boot(options.mode == FabricMode::kEnforce ? BootOf(options, *p.events) : BootId{}),
        fabric_state(options.module_map_files, {p.clock, p.events, p.store, p.reader, boot}) {
    if (options.mode == FabricMode::kEnforce)
      enforcement = std::make_unique<Enforcement>(options, parts, boot);
  }

  [[nodiscard]] Enforcer* enforcer() const {
    return enforcement == nullptr ? nullptr : &enforcement->enforcer();
  }

  // `busy` follows whatever it is made of.
  void Recount() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    busy = {};
    for (const PciAddress& address : holdings.Held()) busy = busy | picture->ModulesOf(address);
    if (enforcement != nullptr) busy = busy | enforcer()->BusyModules();
  }
  void Repaint() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    picture = MakePicture(inventory.get(), fabric);
    Recount();
  }
  // What the Enforcer has changed, or may have.
  void Catch() {
    const absl::MutexLock lock(&mutex);
    fabric = enforcement->Overlay(fabric);
    Repaint();
  }
  std::shared_ptr<const pci::Inventory> Scanned() {
    const absl::MutexLock lock(&mutex);
    return inventory;
  }
  void SetBoard(const FabricKnowledge& known) { enforcement->SetBoard(Scanned().get(), known); }

  const Options options;
  const Parts parts;
  const BootId boot;                         // in enforce only
  FabricState fabric_state;                  // the caller of RefreshFabric
  std::unique_ptr<Enforcement> enforcement;  // null unless in enforce
  bool view_readable = true;                 // the caller of RefreshAssignments
  absl::Mutex admission;

  mutable absl::Mutex mutex;
  std::shared_ptr<const pci::Inventory> inventory ABSL_GUARDED_BY(mutex);
  std::shared_ptr<const FabricKnowledge> fabric ABSL_GUARDED_BY(mutex);
  std::shared_ptr<const Picture> picture ABSL_GUARDED_BY(mutex);
  Holdings holdings ABSL_GUARDED_BY(mutex);
  fabric::ModuleSet busy ABSL_GUARDED_BY(mutex);
};

Tenancies::Tenancies(Options options, Parts parts)
    : state_(std::make_unique<State>(std::move(options), parts)) {
  absl::MutexLock lock(&state_->mutex);
  state_->fabric = state_->options.mode == FabricMode::kOff
                       ? std::make_shared<const FabricKnowledge>()
                       : state_->fabric_state.Load();
  if (state_->enforcement != nullptr) {
    state_->enforcement->SetBoard(nullptr, *state_->fabric);
    if (const std::optional<fabric::FabricList> list = state_->fabric_state.ListOfThisBoot())
      state_->enforcer()->ObserveRememberedList(*list);
  }
  state_->Repaint();
}

Tenancies::~Tenancies() = default;

Preference Tenancies::Prefer(std::span<const PciAddress> available,
                             std::span<const PciAddress> must_include, int size) {
  std::shared_ptr<const Picture> picture;
  fabric::ModuleSet busy;
  {
    absl::MutexLock lock(&state_->mutex);
    picture = state_->picture;
    busy = state_->busy;
  }
  PreferenceRequest request{available, must_include, size, {}};
  if (state_->enforcement != nullptr) request.avoid = state_->enforcer()->ToAvoid();
  if (state_->options.mode == FabricMode::kOff) return PreferNodes(*picture, request);
  return PreferPartition(*picture, busy, state_->options.policy, request,
                         state_->options.mode == FabricMode::kEnforce);
}

Result<Grant> Tenancies::Acquire(std::span<const PciAddress> devices,
                                 std::optional<absl::Duration> asked) {
  if (devices.empty()) return absl::InvalidArgumentError("no device was asked for");
  std::set<PciAddress> seen;
  std::vector<Resolved> all;
  const std::shared_ptr<const pci::Inventory> scanned = state_->Scanned();
  for (const PciAddress& address : devices) {
    if (!seen.insert(address).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          address.ToString(), " was asked for twice in one request; name each device once"));
    }
    ASSIGN_OR_RETURN(Resolved resolved, Resolve(state_->options.host_root, address, scanned.get()));
    all.push_back(std::move(resolved));
  }
  std::optional<Acquired> acquired;
  if (state_->enforcement != nullptr) {
    Result<std::optional<Acquired>> answer = state_->enforcement->Acquire(all, asked);
    state_->Catch();  // a refusal may have changed something too
    RETURN_IF_ERROR(answer.status());
    acquired = *answer;
  }

  Grant grant;
  std::vector<PciAddress> gpus;
  for (Resolved& resolved : all) {
    grant.devices.push_back(std::move(resolved.device));
    gpus.insert(gpus.end(), resolved.gpus.begin(), resolved.gpus.end());
  }
  std::shared_ptr<const Picture> picture;
  {
    absl::MutexLock lock(&state_->mutex);
    picture = state_->picture;
    grant.id = state_->holdings.Add(devices, state_->parts.clock->Monotonic());
    state_->Recount();
  }
  if (acquired) {
    grant.partition = acquired->partition;
    if (acquired->begun) state_->enforcement->Began(grant.id, *acquired);
  }
  if (state_->options.mode != FabricMode::kAdvise) return grant;
  PartitionCheck check = CheckPartition(*picture->fabric, gpus);
  grant.partition = check.partition;
  if (check.event) state_->parts.events->Report(*check.event);
  return grant;
}

void Tenancies::Release(std::uint64_t grant_id) {
  {
    const absl::MutexLock lock(&state_->mutex);
    state_->holdings.Release(grant_id);
    state_->Recount();
  }
  if (state_->enforcement == nullptr) return;
  state_->enforcement->Release(grant_id);
  state_->Catch();
}

Status Tenancies::PreStart(std::span<const PciAddress> devices) {
  if (state_->enforcement == nullptr) return OkStatus();
  std::vector<Resolved> all;
  const std::shared_ptr<const pci::Inventory> scanned = state_->Scanned();
  for (const PciAddress& address : devices) {
    ASSIGN_OR_RETURN(Resolved resolved, Resolve(state_->options.host_root, address, scanned.get()));
    all.push_back(std::move(resolved));
  }
  const Status ready = state_->enforcement->PreStart(all);
  state_->Catch();
  return ready;
}

void Tenancies::SetInventory(std::shared_ptr<const pci::Inventory> inventory) {
  std::shared_ptr<const FabricKnowledge> fabric;
  {
    const absl::MutexLock lock(&state_->mutex);
    state_->inventory = std::move(inventory);
    state_->Repaint();
    fabric = state_->fabric;
  }
  if (state_->enforcement != nullptr) state_->SetBoard(*fabric);
}

void Tenancies::RefreshFabric() {
  if (state_->options.mode == FabricMode::kOff) return;
  const std::uint64_t generation =
      state_->enforcement == nullptr ? 0 : state_->enforcer()->FabricGeneration();
  std::shared_ptr<const FabricKnowledge> fabric = state_->fabric_state.Refresh();
  if (state_->enforcement != nullptr) {
    state_->SetBoard(*fabric);
    state_->enforcement->SetList(state_->fabric_state, generation);
    fabric = state_->enforcement->Overlay(fabric);
  }
  {
    absl::MutexLock lock(&state_->mutex);
    state_->fabric = std::move(fabric);
    state_->Repaint();
  }
  state_->fabric_state.Settle();
}

bool Tenancies::RefreshAssignments(AssignmentSource& source) {
  if (!state_->admission.TryLock()) return false;
  const absl::Duration started = state_->parts.clock->Monotonic();
  Result<AssignmentView> view = source.Read();
  state_->admission.Unlock();

  const bool readable = view.ok();
  if (readable != state_->view_readable) {
    state_->parts.events->Report(
        readable ? Event{"assignments_readable",
                         Severity::kInfo,
                         "kubelet says again which devices are assigned",
                         {}}
                 : Event{"assignments_unreadable",
                         Severity::kWarning,
                         absl::StrCat("kubelet does not say which devices are assigned: ",
                                      std::string(view.status().message()),
                                      "; going on with its last answer"),
                         {{"code", absl::StatusCodeToString(view.status().code())}}});
  }
  state_->view_readable = readable;
  if (!readable) return true;
  if (state_->enforcement != nullptr) state_->enforcer()->ObserveAssignments(*view, started);
  absl::MutexLock lock(&state_->mutex);
  state_->holdings.SetView(std::move(view->devices), started);
  state_->Recount();
  return true;
}

void Tenancies::SetAssignmentSource(AssignmentSource* source) {
  if (state_->enforcement != nullptr) state_->enforcer()->SetAssignmentSource(source);
}

void Tenancies::Reconcile() {
  if (state_->enforcement == nullptr) return;
  state_->enforcer()->Reconcile();
  state_->Catch();
}

BlockedDevices Tenancies::Blocked() const {
  return state_->enforcement == nullptr ? BlockedDevices{} : state_->enforcer()->Blocked();
}

Status Tenancies::FabricStatus() const {
  return state_->enforcement == nullptr ? OkStatus() : state_->enforcer()->FabricStatus();
}

Status Tenancies::JournalStatus() const {
  return state_->enforcement == nullptr ? OkStatus() : state_->enforcer()->JournalStatus();
}

namespace {

Status NotEnforcing() {
  return absl::FailedPreconditionError(
      "there are no tenancies: fabric.mode is not enforce on this node");
}

}  // namespace

Status Tenancies::Drain(bool on) {
  if (state_->enforcement == nullptr) return NotEnforcing();
  return state_->enforcer()->Drain(on);
}

Status Tenancies::ReleaseByOperator(std::uint64_t tenancy, bool force) {
  if (state_->enforcement == nullptr) return NotEnforcing();
  const Status released = state_->enforcer()->ReleaseById(tenancy, force);
  state_->Catch();
  return released;
}

Result<std::vector<PlannedAction>> Tenancies::PlanReconcile() {
  if (state_->enforcement == nullptr) return NotEnforcing();
  return state_->enforcer()->PlanReconcile();
}

std::optional<EnforceView> Tenancies::Enforced() const {
  if (state_->enforcement == nullptr) return std::nullopt;
  return state_->enforcer()->View();
}

Tenancies::Admission Tenancies::BeginAdmission() {
  return {state_->admission, state_->parts.clock->Monotonic()};
}

FabricView Tenancies::View() const {
  std::shared_ptr<const FabricKnowledge> fabric;
  fabric::ModuleSet busy;
  {
    absl::MutexLock lock(&state_->mutex);
    fabric = state_->fabric;
    busy = state_->busy;
  }
  return {fabric->known, fabric->up,  fabric->error, fabric->read_at,
          fabric->table, fabric->map, busy,          fabric->map_errors};
}

}  // namespace switchyard::tenancy
