// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests: devices as the inventory would hold them, and a small pci.ids. Header-only.

#include <stdlib.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/files.h"
#include "pci/inventory.h"
#include "pci/pci_ids.h"

namespace switchyard::kube::testing {

inline PciAddress Pci(absl::string_view text) { return PciAddress::Parse(text).value(); }

struct FakeDevice {
  std::string address;
  int group = 0;
  std::string driver = "vfio-pci";  // empty: none
  std::optional<std::string> cdev = std::nullopt;
  std::optional<int> numa_node = std::nullopt;
  std::uint16_t device = 0x2330;
  bool nvswitch = false;
};

// Alone in its group. Not on vfio-pci = not ready.
inline pci::Device MakeDevice(const FakeDevice& fake) {
  pci::Device device;
  device.self.address = Pci(fake.address);
  device.self.class_code = fake.nvswitch ? 0x068000 : 0x030200;
  device.self.vendor = pci::kVendorNvidia;
  device.self.device = fake.device;
  if (!fake.driver.empty()) device.self.driver = fake.driver;
  device.self.on_vfio = fake.driver == "vfio-pci";
  device.self.vfio_cdev = fake.cdev;
  device.self.iommu_group = fake.group;
  device.self.numa_node = fake.numa_node;
  device.members = {device.self};
  if (!device.self.on_vfio) {
    device.problem = "on " + fake.driver + ": bind it to vfio-pci";
  } else {
    device.backend = fake.cdev.has_value() ? pci::Backend::kIommufd : pci::Backend::kLegacy;
  }
  return device;
}

// Devices of one group number are members of each other. By address, as fakes are given.
inline pci::Inventory MakeInventory(const std::vector<FakeDevice>& fakes) {
  pci::Inventory inventory;
  for (const FakeDevice& fake : fakes) inventory.devices.push_back(MakeDevice(fake));
  for (pci::Device& device : inventory.devices) {
    device.members.clear();
    for (const FakeDevice& other : fakes) {
      if (other.group == *device.self.iommu_group) device.members.push_back(MakeDevice(other).self);
    }
  }
  return inventory;
}

inline pci::PciIds TestPciIds() {
  std::string path = "/tmp/pci-ids-XXXXXX";
  ::close(::mkstemp(path.data()));
  WriteFileAtomically(path,
                      "10de  NVIDIA Corporation\n"
                      "\t0001  [_]\n"
                      "\t0fff  GK107 [Quadro K-1000]\n"
                      "\t20b1  GA100 [A100 PCIe 40GB]\n"
                      "\t20f1  GA100 [A100 PCIe 40GB]\n")
      .IgnoreError();
  pci::PciIds ids(path);
  (void)ids.Name(0);  // reads the file
  ::unlink(path.c_str());
  return ids;
}

}  // namespace switchyard::kube::testing
