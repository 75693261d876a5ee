// SPDX-License-Identifier: Apache-2.0
#pragma once

// What this node offers to kubelet: from the scanned inventory to resources and their devices. It
// remembers (in the store, over restarts) which devices were seen on a vfio driver and under which
// names they were advertised; a remembered device that is gone or rebound stays, Unhealthy, so
// capacity stays physical. Owns the current Offer. Update from one thread; Current from any.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "base/event.h"
#include "base/pci_address.h"
#include "kube/contract.h"
#include "kube/device_memory.h"
#include "pci/inventory.h"
#include "store/store.h"
#include "tenancy/assignments.h"

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
  std::string name;                       // "nvidia.com/..."
  std::vector<std::string> former_names;  // of devices of it: pods may still have them under these
  DeviceKind kind = DeviceKind::kGpu;
  bool preferred_available = false;
  bool pre_start_required = false;
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
  // By the name of now or a former one; null: none of ours.
  [[nodiscard]] const OfferedDevice* FindDevice(absl::string_view resource,
                                                absl::string_view id) const;
};

class Catalogue {
 public:
  // Loads what is remembered. `store` may be null; all three must outlive the catalogue.
  Catalogue(const Contract& contract, store::Store* store, EventSink& events);

  // The new offer, also kept as Current. A `blocked` device is Unhealthy with that reason, one that
  // no VM could take anyway with its own; of devices that share a group, one is enough. Events:
  // device_offered, device_unhealthy, device_healthy, devices_grouped (why allocatable < physical),
  // device_not_offered, resource_renamed, store_failed; each when it changes.
  std::shared_ptr<const Offer> Update(const pci::Inventory& inventory,
                                      const tenancy::BlockedDevices& blocked = {});

  // Never null; empty before the first Update.
  [[nodiscard]] std::shared_ptr<const Offer> Current() const;

 private:
  void Remember(const pci::Inventory& inventory);
  [[nodiscard]] pci::Backend NodeBackend() const;
  void AddDevice(const pci::Inventory& inventory, const tenancy::BlockedDevices& blocked,
                 const RememberedDevice& device, pci::Backend node,
                 std::map<std::string, Resource>& resources);
  void NoteNames(Offer& offer);
  void ReportChanges(const Offer& before, const Offer& now);
  void ReportOnce(const PciAddress& address, absl::string_view event, Severity severity,
                  const std::string& message);

  const Contract& contract_;
  EventSink& events_;
  DeviceMemory memory_;
  std::map<std::pair<PciAddress, absl::string_view>, std::string> said_;  // last message of a kind

  mutable absl::Mutex mutex_;
  std::shared_ptr<const Offer> current_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace switchyard::kube
