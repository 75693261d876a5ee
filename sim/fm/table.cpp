// SPDX-License-Identifier: Apache-2.0
#include "sim/fm/table.h"

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_format.h"

namespace switchyard::sim {
namespace {

const BoardDevice* DeviceOf(const Board& board, int module) {
  const auto found = std::find_if(board.devices.begin(), board.devices.end(),
                                  [&](const BoardDevice& d) { return d.module == module; });
  return found == board.devices.end() ? nullptr : &*found;
}

// FM's own spelling: eight digits of domain, upper case.
std::string BusId(const PciAddress& a) {
  return absl::StrFormat("%08X:%02X:%02X.%X", a.domain, a.bus, a.device, a.function);
}

fmFabricPartitionGpuInfo MakeGpu(const Board& board, const BoardPartition& partition, int module,
                                 bool zero_pci_bus_ids) {
  fmFabricPartitionGpuInfo gpu{};
  gpu.physicalId = static_cast<std::uint32_t>(module);
  gpu.numNvLinksAvailable = static_cast<std::uint32_t>(partition.nvlinks_per_gpu);
  gpu.nvlinkLineRateMBps = static_cast<std::uint32_t>(board.nvlink_line_rate_mbps);
  for (const BoardPartition& p : board.partitions) {
    gpu.maxNumNvLinks = std::max(gpu.maxNumNvLinks, static_cast<std::uint32_t>(p.nvlinks_per_gpu));
  }
  std::string bus_id = zero_pci_bus_ids ? BusId(PciAddress{}) : "";
  std::string uuid;
  if (const BoardDevice* device = DeviceOf(board, module); device != nullptr) {
    gpu.physicalId = static_cast<std::uint32_t>(device->physical_id);
    if (board.identity_by_pci) {
      bus_id = BusId(device->address);
      uuid = device->uuid;
    }
  }
  std::snprintf(gpu.pciBusId, sizeof(gpu.pciBusId), "%s", bus_id.c_str());
  std::snprintf(gpu.uuid, sizeof(gpu.uuid), "%s", uuid.c_str());
  return gpu;
}

void Break(fmFabricPartitionList& list, BrokenTable how) {
  fmFabricPartitionInfo* const partitions = list.partitionInfo;
  if (list.numPartitions < 2) return;
  switch (how) {
    case BrokenTable::kNone:
      break;
    case BrokenTable::kTooManyPartitions:
      list.numPartitions = 65;
      break;
    case BrokenTable::kTooManyGpus:
      partitions[0].numGpus = 17;
      break;
    case BrokenTable::kRepeatedId:
      partitions[1].partitionId = partitions[0].partitionId;
      break;
    case BrokenTable::kEmptyPartition:
      partitions[list.numPartitions - 1].numGpus = 0;
      break;
    case BrokenTable::kRepeatedGpu:
      partitions[0].gpuInfo[1] = partitions[0].gpuInfo[0];
      break;
  }
}

}  // namespace

bool IsListed(const Board& board, const BoardPartition& partition,
              const FabricManagerFaults& faults) {
  return !board.identity_by_pci ||
         std::none_of(partition.modules.begin(), partition.modules.end(),
                      [&](int module) { return faults.failed_modules.contains(module); });
}

std::unique_ptr<fmFabricPartitionList> MakeList(const Board& board, const std::set<int>& active,
                                                bool zero_pci_bus_ids,
                                                const FabricManagerFaults& faults) {
  auto list = std::make_unique<fmFabricPartitionList>();
  list->version = kPartitionList;
  list->maxNumPartitions = static_cast<std::uint32_t>(board.partitions.size());
  for (const BoardPartition& partition : board.partitions) {
    if (!IsListed(board, partition, faults)) continue;
    fmFabricPartitionInfo& info = list->partitionInfo[list->numPartitions++];
    info.partitionId = static_cast<std::uint32_t>(partition.id);
    info.isActive = active.count(partition.id) > 0 ? 1 : 0;
    for (int module : partition.modules) {
      info.gpuInfo[info.numGpus++] = MakeGpu(board, partition, module, zero_pci_bus_ids);
    }
  }
  Break(*list, faults.table);
  return list;
}

}  // namespace switchyard::sim
