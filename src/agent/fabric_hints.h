// SPDX-License-Identifier: Apache-2.0
#pragma once

// Signs that a node has an NVLink fabric, so that fabric.mode off is most likely a mistake: for the
// warning at start and for `switchyard doctor`. Reads sysfs; blocking.

#include <string>
#include <vector>

#include "base/host_root.h"
#include "pci/inventory.h"

namespace switchyard::agent {

// One phrase each: "6 NVSwitches", "0000:05:00.0 is a switch management function (SW_MNG)". Empty:
// no sign. On Blackwell boards the switches are no PCI devices; a bridge function whose vital
// product data says SW_MNG manages them.
[[nodiscard]] std::vector<std::string> FabricHints(const HostRoot& root,
                                                   const pci::Inventory& inventory);

}  // namespace switchyard::agent
