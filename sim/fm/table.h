// SPDX-License-Identifier: Apache-2.0
#pragma once

// A board's partition table as Fabric Manager fills it into the C structure. Pure; any thread.

#include <memory>
#include <set>

#include "sim/board/board.h"
#include "sim/fm/abi.h"
#include "sim/fm/fabric_manager.h"

namespace switchyard::sim {

[[nodiscard]] std::unique_ptr<fmFabricPartitionList> MakeList(const Board& board,
                                                              const std::set<int>& active,
                                                              bool zero_pci_bus_ids,
                                                              const FabricManagerFaults& faults);

}  // namespace switchyard::sim
