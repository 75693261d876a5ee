// SPDX-License-Identifier: Apache-2.0
#include "fabric/partition_table.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "fabric/module_map.h"

namespace switchyard::fabric {
namespace {

Status Broken(absl::string_view what, absl::string_view rule) {
  return absl::DataLossError(absl::StrCat(
      "the partition list has ", what, ", but ", rule,
      "; nothing of it is used. Restart Fabric Manager, and if it says the same again, "
      "report it to its vendor"));
}

// A GPU is known by three names; none may come twice.
Status CheckGpus(const FabricPartition& partition) {
  std::set<unsigned> ids;
  std::set<std::string> uuids;
  std::set<PciAddress> addresses;
  for (const FabricGpu& gpu : partition.gpus) {
    std::string twice;
    if (!ids.insert(gpu.physical_id).second) {
      twice = absl::StrCat("physical id ", gpu.physical_id);
    } else if (!gpu.uuid.empty() && !uuids.insert(gpu.uuid).second) {
      twice = gpu.uuid;
    } else if (gpu.address && !addresses.insert(*gpu.address).second) {
      twice = gpu.address->ToString();
    }
    if (!twice.empty()) {
      return Broken(absl::StrCat("GPU ", twice, " twice in partition ", partition.id),
                    "a partition is a set of different GPUs");
    }
  }
  return OkStatus();
}

// The module id of one GPU, or nothing: a number that isn't one is never taken for one.
std::optional<ModuleId> ModuleOf(const FabricGpu& gpu, const ModuleMap& map) {
  if (gpu.address) return map.ModuleOf(*gpu.address);
  if (gpu.physical_id < unsigned{kMinModule} || gpu.physical_id > unsigned{kMaxModule})
    return std::nullopt;
  return static_cast<ModuleId>(gpu.physical_id);
}

}  // namespace

Status FabricList::Validate() const {
  if (partitions.size() > size_t{kMaxPartitions}) {
    return Broken(absl::StrCat(partitions.size(), " partitions"),
                  absl::StrCat(kMaxPartitions, " is the limit"));
  }
  std::set<int> ids;
  for (const FabricPartition& partition : partitions) {
    if (!ids.insert(partition.id).second)
      return Broken(absl::StrCat("partition ", partition.id, " twice"),
                    "an id names one partition");
    if (partition.gpus.empty()) {
      return Broken(absl::StrCat("partition ", partition.id, " without a GPU"),
                    "a partition has at least one");
    }
    if (partition.gpus.size() > size_t{kMaxGpusPerPartition}) {
      return Broken(
          absl::StrCat("partition ", partition.id, " with ", partition.gpus.size(), " GPUs"),
          absl::StrCat(kMaxGpusPerPartition, " is the limit"));
    }
    RETURN_IF_ERROR(CheckGpus(partition));
  }
  return OkStatus();
}

const Partition* PartitionTable::Find(int id) const {
  const auto it = std::find_if(partitions.begin(), partitions.end(),
                               [id](const Partition& p) { return p.id == id; });
  return it == partitions.end() ? nullptr : &*it;
}

PartitionTable MakeTable(const FabricList& list, const ModuleMap& map) {
  PartitionTable table;
  for (const FabricPartition& from : list.partitions) {
    Partition partition{.id = from.id, .active = from.active, .modules = {}, .complete = true};
    for (const FabricGpu& gpu : from.gpus) {
      if (const auto module = ModuleOf(gpu, map)) partition.modules.Insert(*module);
    }
    // Also false where two GPUs came out as one module, which no honest pair of sources does.
    partition.complete = static_cast<size_t>(partition.modules.size()) == from.gpus.size();
    table.modules = table.modules | partition.modules;
    table.partitions.push_back(partition);
  }
  std::sort(table.partitions.begin(), table.partitions.end(),
            [](const Partition& a, const Partition& b) { return a.id < b.id; });
  return table;
}

}  // namespace switchyard::fabric
