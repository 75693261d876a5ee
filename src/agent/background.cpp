// SPDX-License-Identifier: Apache-2.0
#include "agent/background.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kube/cdi_specs.h"

namespace switchyard::agent {
namespace {

// Uevents are hints and may be lost; this is how long a lost one can matter.
constexpr absl::Duration kScanInterval = absl::Seconds(10);
// In enforce nothing can be granted while Fabric Manager is down, and after a warm restart it waits
// for no more than 60 s.
constexpr absl::Duration kWhileFabricIsDown = absl::Seconds(5);
constexpr absl::Duration kAssignmentsInterval = absl::Seconds(10);
// kubelet records an allocation after our answer has arrived; a List before that can make it forget
// the allocation (kubernetes#137534).
constexpr absl::Duration kAfterAllocate = absl::Milliseconds(500);
// With a remembered list there is no haste: registration has the machine to itself.
constexpr absl::Duration kAfterRegistration = absl::Milliseconds(200);
constexpr absl::Duration kWhileAdmitting = absl::Milliseconds(100);

}  // namespace

Background::Background(const Config& config, Parts parts, bool writes_cdi)
    : config_(config),
      parts_(parts),
      writes_cdi_(writes_cdi),
      // As if one had just been: kubelet is busy with our registration first.
      last_allocate_ns_(absl::ToInt64Nanoseconds(parts.clock->Monotonic())),
      uevents_(pci::UeventSocket::Open()) {}

std::shared_ptr<const pci::Inventory> Background::Scan() {
  Result<pci::Inventory> scanned = pci::Scan(HostRoot(config_.paths.host_root));
  const std::string error(scanned.status().message());
  bool changed = false;
  {
    absl::MutexLock lock(&mutex_);
    changed = std::exchange(scan_error_, error) != error;
    if (scanned.ok()) inventory_ = std::make_shared<const pci::Inventory>(*std::move(scanned));
  }
  if (!error.empty()) {
    if (changed) {
      parts_.events->Report({"inventory_failed",
                             Severity::kError,
                             absl::StrCat("the devices can't be listed: ", error,
                                          "; is sys/ mounted under paths.hostRoot?"),
                             {}});
    }
    return nullptr;
  }
  std::shared_ptr<const pci::Inventory> inventory = this->inventory();
  ReportProblems(*inventory);
  parts_.tenancies->SetInventory(inventory);
  return inventory;
}

void Background::LookOnce() { (void)Scan(); }

void Background::ScanOnce() {
  const std::shared_ptr<const pci::Inventory> inventory = Scan();
  if (inventory == nullptr) return;
  tenancy::BlockedDevices blocked = parts_.tenancies->Blocked();
  const std::shared_ptr<const kube::Offer> offer = parts_.catalogue->Update(*inventory, blocked);
  {
    const absl::MutexLock lock(&mutex_);
    published_blocked_ = std::move(blocked);
  }
  // Before kubelet can hand out a device, its CDI name must resolve.
  if (writes_cdi_) ReportCdi(kube::WriteCdiSpecs(config_.paths.cdi, *offer));
  parts_.plugins->Publish(offer);
}

void Background::ReportProblems(const pci::Inventory& inventory) {
  std::map<std::string, std::string> problems;
  for (const pci::Problem& problem : inventory.problems) problems[problem.path] = problem.problem;
  for (const auto& [path, problem] : problems) {
    const auto before = reported_problems_.find(path);
    if (before != reported_problems_.end() && before->second == problem) continue;
    parts_.events->Report({"device_unreadable",
                           Severity::kError,
                           absl::StrCat(path, ": ", problem),
                           {{"path", path}}});
  }
  reported_problems_ = std::move(problems);
}

void Background::ReportCdi(const Status& status) {
  std::string message(status.message());
  if (!status.ok() && message != reported_cdi_) {
    parts_.events->Report({"cdi_failed",
                           Severity::kError,
                           absl::StrCat("CDI files are not up to date: ", message),
                           {}});
  }
  reported_cdi_ = std::move(message);
}

void Background::ReadFabricFirst(absl::Duration patience) {
  StartFabricWorker(absl::ZeroDuration());
  fabric_was_read_.WaitFor(*parts_.clock, patience);
}

void Background::StartFabricWorker(absl::Duration delay) {
  if (parts_.helper == nullptr) return;
  const absl::MutexLock lock(&mutex_);
  if (fabric_worker_ != nullptr) return;
  fabric_worker_ = std::make_unique<Worker>("fabric", *parts_.clock, [this, delay]() mutable {
    if (delay > absl::ZeroDuration()) return std::exchange(delay, absl::ZeroDuration());
    parts_.tenancies->RefreshFabric();
    Reconcile();
    fabric_was_read_.Notify();
    fabric_is_down_ = !parts_.tenancies->FabricStatus().ok();
    return fabric_is_down_ ? std::min(config_.fabric.probe_interval, kWhileFabricIsDown)
                           : config_.fabric.probe_interval;
  });
}

void Background::AskFabricIfDown() {
  if (parts_.tenancies->FabricStatus().ok() || fabric_is_down_.exchange(true)) return;
  const absl::MutexLock lock(&mutex_);
  if (fabric_worker_ != nullptr) fabric_worker_->Poke();
}

void Background::Reconcile() {
  if (config_.fabric.mode != tenancy::FabricMode::kEnforce) return;
  const absl::Duration began = parts_.clock->Monotonic();
  parts_.tenancies->Reconcile();
  parts_.events->Measure({"reconcile", parts_.clock->Monotonic() - began, {}});
  const tenancy::BlockedDevices blocked = parts_.tenancies->Blocked();
  const absl::MutexLock lock(&mutex_);
  if (blocked != published_blocked_ && inventory_worker_ != nullptr) inventory_worker_->Poke();
}

void Background::Start() {
  auto inventory =
      std::make_unique<Worker>("inventory", *parts_.clock, [this, first = true]() mutable {
        // The first was before Start, but in enforce the fabric may have been read since.
        if (!std::exchange(first, false) || config_.fabric.mode == tenancy::FabricMode::kEnforce)
          ScanOnce();
        return kScanInterval;
      });
  {
    const absl::MutexLock lock(&mutex_);
    inventory_worker_ = std::move(inventory);
  }
  Status uevents = uevents_.status();
  if (uevents.ok()) {
    uevent_watcher_ = std::make_unique<FdWatcher>("uevents", uevents_->fd(), [this] {
      if (!uevents_->DrainAndCheck()) return;
      const absl::MutexLock lock(&mutex_);
      if (inventory_worker_ != nullptr) inventory_worker_->Poke();
    });
    if (!uevent_watcher_->watches()) uevents = absl::ResourceExhaustedError("no thread to be had");
  }
  if (!uevents.ok()) {
    parts_.events->Report(
        {"uevents_unavailable",
         Severity::kWarning,
         absl::StrCat("changes of devices are seen by the periodic scan only: ", uevents.message()),
         {}});
  }
  StartFabricWorker(kAfterRegistration);
  auto assignments =
      std::make_unique<Worker>("assignments", *parts_.clock, [this] { return AssignmentsStep(); });
  absl::MutexLock lock(&mutex_);
  assignments_worker_ = std::move(assignments);
}

void Background::Stop() {
  uevent_watcher_.reset();
  if (parts_.helper != nullptr) parts_.helper->Close();
  std::unique_ptr<Worker> fabric;
  std::unique_ptr<Worker> inventory;
  std::unique_ptr<Worker> assignments;
  {
    absl::MutexLock lock(&mutex_);
    fabric = std::move(fabric_worker_);
    inventory = std::move(inventory_worker_);
    assignments = std::move(assignments_worker_);
  }
}

void Background::AllocateReturned() {
  last_allocate_ns_ = absl::ToInt64Nanoseconds(parts_.clock->Monotonic());
  if (refresh_due_.exchange(true)) return;  // the worker looks at the time again when it wakes
  absl::MutexLock lock(&mutex_);
  if (assignments_worker_ != nullptr) assignments_worker_->Poke();
}

absl::Duration Background::AssignmentsStep() {
  const absl::Duration since =
      parts_.clock->Monotonic() - absl::Nanoseconds(last_allocate_ns_.load());
  if (since < kAfterAllocate) return kAfterAllocate - since;
  refresh_due_ = false;
  if (!parts_.tenancies->RefreshAssignments(*parts_.assignments)) return kWhileAdmitting;
  Reconcile();
  AskFabricIfDown();
  return kAssignmentsInterval;
}

std::shared_ptr<const pci::Inventory> Background::inventory() const {
  absl::MutexLock lock(&mutex_);
  return inventory_;
}

std::string Background::scan_error() const {
  absl::MutexLock lock(&mutex_);
  return scan_error_;
}

}  // namespace switchyard::agent
