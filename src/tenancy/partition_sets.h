// SPDX-License-Identifier: Apache-2.0
#pragma once

// What admission, reconciler and actuator ask of a partition table. Pure.

#include "fabric/module_set.h"
#include "fabric/partition_table.h"
#include "tenancy/ledger.h"

namespace switchyard::tenancy {

// The partition that is exactly `modules`; null: there is none. One with a GPU that nobody can tell
// is none.
[[nodiscard]] inline const fabric::Partition* FindExact(const fabric::PartitionTable& table,
                                                        fabric::ModuleSet modules) {
  for (const fabric::Partition& p : table.partitions) {
    if (p.complete && p.modules == modules) return &p;
  }
  return nullptr;
}

// Another active partition that stands where this one should be; null: none does.
[[nodiscard]] inline const fabric::Partition* Obstructing(const fabric::PartitionTable& table,
                                                          const fabric::Partition& partition) {
  for (const fabric::Partition& p : table.partitions) {
    if (p.active && p.id != partition.id && p.modules.Overlaps(partition.modules)) return &p;
  }
  return nullptr;
}

// Active, and no tenancy is exactly it.
[[nodiscard]] inline bool IsForeign(const Ledger& ledger, const fabric::Partition& partition) {
  return partition.active &&
         (!partition.complete || ledger.FindExact(partition.modules) == nullptr);
}

}  // namespace switchyard::tenancy
