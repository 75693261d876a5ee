// SPDX-License-Identifier: Apache-2.0
#pragma once

// A board as allocators see it, and what is held of it as one word. LoadYard's errors name file,
// key and rule, as those of the board do. Plain values, immutable once made; any thread.

#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "fabric/module_set.h"
#include "fabric/partition_table.h"

namespace switchyard::bench {

// Bit i: table.partitions[i] is held. Held partitions are disjoint.
using Held = std::uint64_t;
static_assert(fabric::kMaxPartitions <= 64);

struct Yard {
  std::string name;
  fabric::PartitionTable table;  // none active
  std::array<int, fabric::kMaxModule + 1> numa_node{};
  std::vector<fabric::ModuleId> address_order;  // what an allocator that only counts goes by

  [[nodiscard]] fabric::ModuleSet ModulesOf(Held held) const {
    fabric::ModuleSet modules;
    for (; held != 0; held &= held - 1) {
      modules = modules | table.partitions[static_cast<size_t>(std::countr_zero(held))].modules;
    }
    return modules;
  }
  [[nodiscard]] static constexpr Held Bit(int partition) { return Held{1} << partition; }
  // Positions in the table, ascending; what fits and nothing of how good it is.
  [[nodiscard]] std::vector<int> FreePartitions(Held held, int size) const;
  [[nodiscard]] bool HasSize(int size) const;
};

// A board by name or file (sim/board/board.h); `seed` chooses its addresses.
[[nodiscard]] Result<Yard> LoadYard(const std::string& name_or_file, std::uint64_t seed);

}  // namespace switchyard::bench
