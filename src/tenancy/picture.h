// SPDX-License-Identifier: Apache-2.0
#pragma once

// The node as Prefer and Acquire see it: the last inventory joined with the last knowledge of the
// fabric, with every lookup of the hot path made in advance. Immutable; any thread.

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "base/pci_address.h"
#include "fabric/module_map.h"
#include "fabric/module_set.h"
#include "fabric/partition_table.h"
#include "pci/inventory.h"

namespace switchyard::tenancy {

// What was last read of the fabric, or remembered of it.
struct FabricKnowledge {
  bool known = false;                         // there is a list
  bool up = false;                            // the last read succeeded
  std::string error;                          // why not
  absl::Time read_at = absl::InfinitePast();  // of the list
  fabric::PartitionTable table;
  fabric::ModuleMap map;
  std::vector<std::string> map_errors;  // unusable files and contradictions
};

struct Picture {
  // One device as kubelet knows it: all GPUs (or all NVSwitches) of an IOMMU group.
  struct Device {
    fabric::ModuleSet modules;  // of its GPUs that have a module id
    bool mapped = false;        // all of them do
    std::optional<int> numa_node;
  };

  std::shared_ptr<const FabricKnowledge> fabric;    // never null
  absl::flat_hash_map<PciAddress, Device> devices;  // by the address of every GPU and NVSwitch
  fabric::ModuleSet usable;                         // of ready devices
  std::array<int, fabric::kMaxModule + 1> numa_node{};
  std::vector<fabric::ModuleSet> shared_groups;  // devices of more than one module

  [[nodiscard]] const Device* Find(const PciAddress& address) const;
  // Of a device in the inventory, or of an address that left it but is in the map.
  [[nodiscard]] fabric::ModuleSet ModulesOf(const PciAddress& address) const;
};

// `inventory` may be null: none yet.
[[nodiscard]] std::shared_ptr<const Picture> MakePicture(
    const pci::Inventory* inventory, std::shared_ptr<const FabricKnowledge> fabric);

}  // namespace switchyard::tenancy
