// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where things stand in the tree, below its root and without a leading slash. Pure; any thread.

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/pci_address.h"

namespace switchyard::sim {

// As a uevent names it: "/devices/pci0000:0f/0000:0f:00.0".
inline std::string DevPath(const PciAddress& a) {
  return absl::StrFormat("/devices/pci%04x:%02x/%s", a.domain, a.bus, a.ToString());
}
inline std::string DeviceFolder(const PciAddress& a) { return absl::StrCat("sys", DevPath(a)); }
inline std::string GroupFolder(int group) {
  return absl::StrCat("sys/kernel/iommu_groups/", group);
}
inline std::string DriverFolder(const std::string& driver) {
  return absl::StrCat("sys/bus/pci/drivers/", driver);
}
inline std::string VfioName(int n) { return absl::StrCat("vfio", n); }
inline std::string VfioFolder(const PciAddress& a, int n) {
  return absl::StrCat(DeviceFolder(a), "/vfio-dev/", VfioName(n));
}
inline std::string VfioGroupFolder(int group) {
  return absl::StrCat("sys/devices/virtual/vfio/", group);
}

}  // namespace switchyard::sim
