// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the catalogue must know after a restart: the devices once seen on a vfio driver (store kind
// "device", key address), the names advertised (kind "name", key device id) and those advertised
// before (kind "former_name", key device id). Everything is held
// in memory; only changes are written. A store that fails costs durability, never service: it is
// reported as the event store_failed. One thread at a time.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/event.h"
#include "base/pci_address.h"
#include "base/status.h"
#include "kube/remembered_device.h"
#include "store/store.h"

namespace switchyard::kube {

class DeviceMemory {
 public:
  // Reads the store; it may be null.
  DeviceMemory(store::Store* store, EventSink& events);

  [[nodiscard]] const std::map<PciAddress, RememberedDevice>& devices() const { return devices_; }
  void Keep(const RememberedDevice& device);
  void Forget(const PciAddress& address);

  // Keeps the name under which a device id is advertised. Returns the former one if it differed.
  std::optional<std::string> KeepName(std::uint16_t device, const std::string& name);
  // Pods may run under them for as long as they like. The latest 16 of a device id.
  [[nodiscard]] std::vector<std::string> FormerNames(std::uint16_t device) const;

 private:
  void LoadDevices();
  void LoadNames();
  void KeepFormer(const std::string& key, const std::string& name);
  void ReportIfFailed(const Status& status);

  store::Store* const store_;
  EventSink& events_;
  std::map<PciAddress, RememberedDevice> devices_;
  std::map<std::string, std::string> names_;                // device id as four hex digits -> name
  std::map<std::string, std::vector<std::string>> former_;  // the same -> names, oldest first
};

}  // namespace switchyard::kube
