// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the fabric makes of a set of GPUs that is about to be granted. In advise the set is granted
// whatever this says; the report is what an operator has to act on. Pure; any thread.

#include <optional>
#include <span>
#include <string>

#include "base/event.h"
#include "base/pci_address.h"
#include "tenancy/picture.h"

namespace switchyard::tenancy {

struct PartitionCheck {
  std::optional<int> partition;  // the one that is exactly this set
  // "no_partition": no NVLink, or nobody can tell; "partition_inactive": CUDA error 802 until the
  // operator activates it.
  std::optional<Event> event;
};

// "3 (1,3), 4 (2,4)": the partitions of that size which share the most modules, at most three.
[[nodiscard]] std::string NearestPartitions(const fabric::PartitionTable& table,
                                            fabric::ModuleSet modules);

// `gpus` of all groups, each once. Nothing to say without GPUs or without a known table.
[[nodiscard]] PartitionCheck CheckPartition(const FabricKnowledge& fabric,
                                            std::span<const PciAddress> gpus);

}  // namespace switchyard::tenancy
