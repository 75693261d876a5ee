// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a board file leaves out, made from a seed: where each GPU and NVSwitch sits and what it is.
// The same seed gives the same node on every machine. Pure; any thread.
//
// Device ids are those of pci.ids: H100 SXM5 2330, B200 2901, A100 SXM4 80GB 20b2, V100 SXM3 1db8;
// NVSwitches GH100 22a3, GA100 1af1, GV100 1ac2. Bus numbers are such as real boards show.

#include <cstdint>
#include <set>

#include "sim/board/board.h"

namespace switchyard::sim {

// Fills board.devices for `modules` (2..16 of them, or one).
void DeriveDevices(Board& board, const std::set<int>& modules, std::uint64_t seed);

// Fills what `devices` of the file may leave out: device id, physical id (0 = not given), uuid.
void CompleteDevices(Board& board, std::uint64_t seed);

// Fills board.nvswitches, never on a bus that a GPU has.
void DeriveNvSwitches(Board& board);

}  // namespace switchyard::sim
