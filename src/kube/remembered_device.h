// SPDX-License-Identifier: Apache-2.0
#pragma once

// A device that was seen on a vfio driver, as the store keeps it: enough to go on advertising it
// (Unhealthy) while it is gone or rebound. Plain values; any thread.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/pci_address.h"
#include "base/status.h"
#include "kube/contract.h"

namespace switchyard::kube {

struct RememberedDevice {
  DeviceKind kind = DeviceKind::kGpu;
  std::uint16_t device = 0;  // PCI device id
  DeviceNumbers numbers;     // as last seen on a vfio driver
  bool iommufd = false;      // its backend then
  std::optional<int> numa_node;
  std::vector<PciAddress> members;  // devices of its kind in the group, itself included

  friend bool operator==(const RememberedDevice& a, const RememberedDevice& b);
};

// The store's value: one JSON object.
[[nodiscard]] std::string RememberedDeviceToJson(const RememberedDevice& device);
// kDataLoss says what is wrong. `address` is the store's key.
[[nodiscard]] Result<RememberedDevice> RememberedDeviceFromJson(absl::string_view address,
                                                                absl::string_view json);

}  // namespace switchyard::kube
