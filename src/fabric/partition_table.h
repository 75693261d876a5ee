// SPDX-License-Identifier: Apache-2.0
#pragma once

// Fabric Manager's list of partitions, in two forms: FabricList is what FM said, checked for its
// own rules and nothing else; PartitionTable is the same with each GPU as a module id, which is
// what the planner works on. Plain values; immutable once made; any thread.

#include <optional>
#include <string>
#include <vector>

#include "base/pci_address.h"
#include "base/status.h"
#include "fabric/module_set.h"

namespace switchyard::fabric {

class ModuleMap;

// FM's limits (SDK constants, reference: NVIDIA's Fabric Manager user guide).
inline constexpr int kMaxPartitions = 64;
inline constexpr int kMaxGpusPerPartition = 16;

struct FabricGpu {
  unsigned physical_id = 0;           // FM's id: the module id on H100 and later, another on A100
  std::string uuid;                   // empty on H100 and later
  std::optional<PciAddress> address;  // A100 and older; absent when FM says nothing or all zeros
  unsigned nvlinks_available = 0;
  unsigned nvlinks_max = 0;
  unsigned line_rate_mbps = 0;
  friend bool operator==(const FabricGpu&, const FabricGpu&) = default;
};

struct FabricPartition {
  int id = 0;
  bool active = false;
  std::vector<FabricGpu> gpus;
  friend bool operator==(const FabricPartition&, const FabricPartition&) = default;
};

struct FabricList {
  std::vector<FabricPartition> partitions;
  int max_partitions = 0;  // more than partitions.size() on an A100 with a degraded board

  // FM's rules: at most 64 partitions and 16 GPUs each, no id twice, no empty partition, no GPU
  // twice in one. kDataLoss names the partition and the rule.
  [[nodiscard]] Status Validate() const;
  friend bool operator==(const FabricList&, const FabricList&) = default;
};

// JSON text for the store, and back. Parse refuses what Validate refuses,
// unknown keys, and text over 1 MiB.
[[nodiscard]] std::string FabricListToJson(const FabricList& list);
[[nodiscard]] Result<FabricList> FabricListFromJson(absl::string_view text);

struct Partition {
  int id = 0;
  bool active = false;
  ModuleSet modules;
  // False if FM named a GPU for which there is no module id: then `modules` lacks it, and the
  // partition can't be chosen, but still counts where it overlaps.
  bool complete = true;
};

struct PartitionTable {
  std::vector<Partition> partitions;  // ascending id
  ModuleSet modules;                  // of all partitions
  [[nodiscard]] const Partition* Find(int id) const;
};

// Each GPU of `list` as a module id: by its address through `map` where FM gives one, else FM's
// physical id, which then is the module id (1..16).
[[nodiscard]] PartitionTable MakeTable(const FabricList& list, const ModuleMap& map);

// The published table of a board, as a file (sim/boards/*.json): for planning without a fabric.
// kInvalidArgument names file, key and rule.
[[nodiscard]] Result<PartitionTable> ParseBoard(absl::string_view json,
                                                absl::string_view file_name);

}  // namespace switchyard::fabric
