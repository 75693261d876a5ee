// SPDX-License-Identifier: Apache-2.0
#include "bench/placement/yard.h"

#include <algorithm>

#include "sim/board/board.h"

namespace switchyard::bench {

std::vector<int> Yard::FreePartitions(Held held, int size) const {
  const fabric::ModuleSet taken = ModulesOf(held);
  std::vector<int> free;
  for (size_t i = 0; i < table.partitions.size(); ++i) {
    const fabric::ModuleSet modules = table.partitions[i].modules;
    if (modules.size() == size && !modules.Overlaps(taken)) free.push_back(static_cast<int>(i));
  }
  return free;
}

bool Yard::HasSize(int size) const { return !FreePartitions(0, size).empty(); }

Result<Yard> LoadYard(const std::string& name_or_file, std::uint64_t seed) {
  ASSIGN_OR_RETURN(sim::Board board, sim::LoadBoard(name_or_file, "", seed));
  Yard yard;
  yard.name = board.name;
  for (const sim::BoardPartition& p : board.partitions) {
    fabric::Partition partition{.id = p.id, .active = false, .modules = {}};
    for (const int module : p.modules) partition.modules.Insert(module);
    yard.table.modules = yard.table.modules | partition.modules;
    yard.table.partitions.push_back(partition);
  }
  yard.numa_node.fill(-1);
  std::sort(board.devices.begin(), board.devices.end(),
            [](const auto& a, const auto& b) { return a.address < b.address; });
  for (const sim::BoardDevice& device : board.devices) {
    yard.numa_node[static_cast<size_t>(device.module)] = device.numa_node;
    yard.address_order.push_back(device.module);
  }
  return yard;
}

}  // namespace switchyard::bench
