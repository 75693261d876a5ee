// SPDX-License-Identifier: Apache-2.0
#pragma once

// What this node offers to kubelet: from the scanned inventory to resources and their devices. It
// remembers (in the store, over restarts) which devices were seen on a vfio driver and under which
// names they were advertised; a remembered device that is gone or rebound stays, Unhealthy, so
// capacity stays physical. Owns the current Offer. Update from one thread; Current from any.

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "base/event.h"
#include "base/pci_address.h"
#include "kube/contract.h"
#include "kube/remembered_device.h"
#include "pci/inventory.h"
#include "store/store.h"

namespace switchyard::kube {

// One kubelet device: a GPU or NVSwitch, or several of a kind that share an IOMMU group, under the
// lowest address.
struct OfferedDevice {
  std::string id;  // kubelet's
  PciAddress address;
  std::vector<PciAddress> members;  // all devices of its kind in the group, itself included
  bool healthy = false;
  std::string why_unhealthy;           // empty when healthy
  std::optional<int> numa_node;        // absent = no topology
  std::vector<std::string> cdi_nodes;  // see Contract::CdiNodes
};

struct Resource {
  std::string name;  // "nvidia.com/..."
  DeviceKind kind = DeviceKind::kGpu;
  bool preferred_available = false;
  pci::Backend node_backend = pci::Backend::kLegacy;
  std::vector<OfferedDevice> devices;  // by address

  [[nodiscard]] const OfferedDevice* FindById(absl::string_view id) const;
  [[nodiscard]] const OfferedDevice* FindByAddress(const PciAddress& address) const;
};

// Immutable once made.
struct Offer {
  std::vector<Resource> resources;   // by name
  std::vector<std::string> retired;  // names no longer in use since the last Update
  [[nodiscard]] const Resource* Find(absl::string_view resource) const;
};

class Catalogue {
 public:
  // Loads what is remembered. `store` may be null; all three must outlive the catalogue.
  Catalogue(const Contract& contract, store::Store* store, EventSink& events);

  // The new offer, also kept as Current. Reports as events: device_unhealthy, device_healthy,
  // resource_renamed, devices_grouped (why allocatable < physical), device_not_offered,
  // store_failed.
  std::shared_ptr<const Offer> Update(const pci::Inventory& inventory);

  // Never null; empty before the first Update.
  [[nodiscard]] std::shared_ptr<const Offer> Current() const;

 private:
  void Load();
  void Remember(const pci::Inventory& inventory);
  void Forget(const PciAddress& address);
  [[nodiscard]] pci::Backend NodeBackend() const;
  void Add(const pci::Inventory& inventory, const RememberedDevice& device, Offer& offer);
  void NoteName(const RememberedDevice& device, const std::string& name, Offer& offer);
  void ReportChanges(const Offer& before, const Offer& now);
  void Report(Severity severity, absl::string_view name, std::string message,
              const PciAddress& address);

  const Contract& contract_;
  store::Store* const store_;
  EventSink& events_;
  std::map<PciAddress, RememberedDevice> remembered_;  // units seen on a vfio driver
  std::map<std::string, std::string> names_;           // device id in hex -> advertised name
  std::set<std::string> said_;                         // one-time reports, bounded by devices

  mutable absl::Mutex mutex_;
  std::shared_ptr<const Offer> current_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace switchyard::kube
