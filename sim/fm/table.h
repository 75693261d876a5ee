// SPDX-License-Identifier: Apache-2.0
#pragma once

// A board's partition table as Fabric Manager fills it into the C structure. Pure; any thread.

#include <memory>
#include <set>

#include "sim/board/board.h"
#include "sim/fm/abi.h"
#include "sim/fm/fabric_manager.h"

namespace switchyard::sim {

// False for a partition that FM leaves out of its list, since a GPU of it is out of order.
[[nodiscard]] bool IsListed(const Board& board, const BoardPartition& partition,
                            const FabricManagerFaults& faults);

[[nodiscard]] std::unique_ptr<fmFabricPartitionList> MakeList(const Board& board,
                                                              const std::set<int>& active,
                                                              bool zero_pci_bus_ids,
                                                              const FabricManagerFaults& faults);

}  // namespace switchyard::sim
