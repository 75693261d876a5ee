// SPDX-License-Identifier: Apache-2.0
#pragma once

// What goes on without anybody asking: the inventory (on uevents and every 10 s), the fabric (every
// fabric.probeInterval; in enforce every 5 s at least while Fabric Manager does not answer) and the
// assignment view (after each Allocate and every 10 s), each a step on a thread of its own; in
// enforce the tenancies are reconciled after each of the last two. Problems are events, reported
// when they change.

#include <atomic>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "agent/config.h"
#include "base/clock.h"
#include "base/event.h"
#include "base/fd_watcher.h"
#include "base/worker.h"
#include "fabric/helper.h"
#include "kube/catalogue.h"
#include "kube/device_plugins.h"
#include "pci/inventory.h"
#include "pci/uevents.h"
#include "tenancy/assignments.h"
#include "tenancy/tenancies.h"

namespace switchyard::agent {

class Background {
 public:
  // All borrowed; `helper` is null when the fabric is off.
  struct Parts {
    Clock* clock;
    EventSink* events;
    tenancy::Tenancies* tenancies;
    kube::Catalogue* catalogue;
    kube::DevicePlugins* plugins;
    tenancy::AssignmentSource* assignments;
    fabric::FabricHelper* helper;
  };

  Background(const Config& config, Parts parts, bool writes_cdi);

  // One look at sysfs, published. Before Start, so that registration has something to offer.
  void ScanOnce();
  // The same, not published: for what must be known before anything is offered.
  void LookOnce();
  // For the first start of all, when no partition list is remembered: starts reading the fabric and
  // waits for the first answer, `patience` at most, so that the first pods are placed too.
  void ReadFabricFirst(absl::Duration patience);
  void Start();
  void Stop();  // ends a Fabric Manager call in flight

  // From gRPC threads: an Allocate was answered; read the assignment view soon.
  void AllocateReturned();

  // The last scan; null if none succeeded.
  [[nodiscard]] std::shared_ptr<const pci::Inventory> inventory() const;
  // Why the last scan failed; empty if it did not.
  [[nodiscard]] std::string scan_error() const;

 private:
  void StartFabricWorker(absl::Duration delay);
  // Null if the devices can't be listed (reported when that changes).
  std::shared_ptr<const pci::Inventory> Scan();
  // In enforce: acts on what was just seen, and has the devices' health published if it changed.
  void Reconcile();
  // A change that failed is how Fabric Manager's end is seen first: the next probe may be far away.
  void AskFabricIfDown();
  absl::Duration AssignmentsStep();
  void ReportProblems(const pci::Inventory& inventory);
  void ReportCdi(const Status& status);

  const Config& config_;
  const Parts parts_;
  const bool writes_cdi_;
  std::map<std::string, std::string> reported_problems_;  // by path
  std::string reported_cdi_;
  std::atomic<std::int64_t> last_allocate_ns_;  // of the monotonic clock
  std::atomic<bool> refresh_due_ = false;       // an Allocate came after the last refresh

  mutable absl::Mutex mutex_;
  std::shared_ptr<const pci::Inventory> inventory_ ABSL_GUARDED_BY(mutex_);
  std::string scan_error_ ABSL_GUARDED_BY(mutex_);

  // Made by Start while gRPC threads may already poke it.
  std::unique_ptr<Worker> assignments_worker_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Worker> inventory_worker_ ABSL_GUARDED_BY(mutex_);
  tenancy::BlockedDevices published_blocked_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> fabric_is_down_ = false;  // in enforce; the fabric thread knows, or is poked
  Wakeup fabric_was_read_;                    // outlives the worker that notifies it
  std::unique_ptr<Worker> fabric_worker_ ABSL_GUARDED_BY(mutex_);
  // Open before the first scan, so that no change falls between the two.
  Result<pci::UeventSocket> uevents_;
  std::unique_ptr<FdWatcher> uevent_watcher_;
};

}  // namespace switchyard::agent
