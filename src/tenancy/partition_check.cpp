// SPDX-License-Identifier: Apache-2.0
#include "tenancy/partition_check.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace switchyard::tenancy {
namespace {

using fabric::ModuleSet;
using fabric::Partition;

constexpr size_t kMaxNearest = 3;
constexpr size_t kMaxNamed = 16;  // addresses in one message; a board has at most 16 GPUs

std::string Addresses(std::span<const PciAddress> addresses) {
  const size_t named = std::min(addresses.size(), kMaxNamed);
  return absl::StrCat(
      absl::StrJoin(addresses.begin(), addresses.begin() + static_cast<std::ptrdiff_t>(named), ",",
                    [](std::string* out, const PciAddress& a) { *out += a.ToString(); }),
      named < addresses.size() ? ",..." : "");
}

Event Unmapped(std::span<const PciAddress> gpus, std::span<const PciAddress> unmapped) {
  return {"no_partition",
          Severity::kWarning,
          absl::StrCat(Addresses(unmapped),
                       " has no module id, so nobody can tell whether the GPUs granted are one "
                       "partition; add it to the module map (switchyard mapping set)"),
          {{"pci", Addresses(gpus)}, {"unmapped", Addresses(unmapped)}}};
}

Event NoPartition(const fabric::PartitionTable& table, std::span<const PciAddress> gpus,
                  ModuleSet modules) {
  const std::string nearest = NearestPartitions(table, modules);
  return {"no_partition",
          Severity::kWarning,
          absl::StrCat("granted modules ", modules.ToString(),
                       ", which are no partition: NVLink does not work among them; ",
                       nearest.empty() ? absl::StrCat("no partition has ", modules.size(), " GPUs")
                                       : absl::StrCat("the nearest partitions are ", nearest)),
          {{"pci", Addresses(gpus)}, {"modules", modules.ToString()}, {"nearest", nearest}}};
}

Event Inactive(const Partition& partition, std::span<const PciAddress> gpus, bool up) {
  return {
      "partition_inactive",
      Severity::kWarning,
      absl::StrCat(
          "granted partition ", partition.id, " (modules ", partition.modules.ToString(), ")",
          up ? ", which is not active" : ", which was not active when Fabric Manager last answered",
          "; in advise activating it is the operator's: until then CUDA in the guest "
          "fails with error 802"),
      {{"pci", Addresses(gpus)},
       {"modules", partition.modules.ToString()},
       {"partition", absl::StrCat(partition.id)}}};
}

}  // namespace

std::string NearestPartitions(const fabric::PartitionTable& table, ModuleSet modules) {
  std::vector<const Partition*> same_size;
  for (const Partition& p : table.partitions) {
    if (p.complete && p.modules.size() == modules.size()) same_size.push_back(&p);
  }
  const auto rank = [&](const Partition* p) {
    return std::pair(-(p->modules & modules).size(), p->id);
  };
  std::sort(same_size.begin(), same_size.end(),
            [&](const auto* a, const auto* b) { return rank(a) < rank(b); });
  same_size.resize(std::min(same_size.size(), kMaxNearest));
  return absl::StrJoin(same_size, ", ", [](std::string* out, const Partition* p) {
    absl::StrAppend(out, p->id, " (", p->modules.ToString(), ")");
  });
}

PartitionCheck CheckPartition(const FabricKnowledge& fabric, std::span<const PciAddress> gpus) {
  if (!fabric.known || gpus.empty()) return {};
  ModuleSet modules;
  std::vector<PciAddress> unmapped;
  for (const PciAddress& address : gpus) {
    if (const auto module = fabric.map.ModuleOf(address)) {
      modules.Insert(*module);
    } else {
      unmapped.push_back(address);
    }
  }
  if (!unmapped.empty()) return {std::nullopt, Unmapped(gpus, unmapped)};
  for (const Partition& partition : fabric.table.partitions) {
    if (!partition.complete || partition.modules != modules) continue;
    if (partition.active) return {partition.id, std::nullopt};
    return {partition.id, Inactive(partition, gpus, fabric.up)};
  }
  return {std::nullopt, NoPartition(fabric.table, gpus, modules)};
}

}  // namespace switchyard::tenancy
