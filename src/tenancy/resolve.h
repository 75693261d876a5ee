// SPDX-License-Identifier: Apache-2.0
#pragma once

// From a PCI address to what must be handed over for it, as sysfs has it at this moment: group and
// vfio numbers change over a reboot. Reads only; any thread.

#include <vector>

#include "base/host_root.h"
#include "base/pci_address.h"
#include "base/status.h"
#include "pci/inventory.h"
#include "tenancy/grant.h"
#include "tenancy/record.h"

namespace switchyard::tenancy {

struct Resolved {
  GrantedDevice device;
  TenancyDevice nodes;           // the same in the journal's words
  std::vector<PciAddress> gpus;  // of its group; empty for an NVSwitch
};

// kNotFound: gone; kFailedPrecondition: not ready, or granted under another address. The message
// names the device, the rule and what to do. `scanned`, the last scan, may be null: see ReadDevice.
[[nodiscard]] Result<Resolved> Resolve(const HostRoot& root, const PciAddress& address,
                                       const pci::Inventory* scanned);

}  // namespace switchyard::tenancy
