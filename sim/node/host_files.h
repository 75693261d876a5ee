// SPDX-License-Identifier: Apache-2.0
#pragma once

// Texts of files that a node with GPUs has, made from its board. Pure; any thread.

#include <cstdint>
#include <string>

#include "sim/board/board.h"

namespace switchyard::sim {

// {"00000000:0F:00.0": "5", ...}: the module map, in the spelling that nvidia-smi uses.
[[nodiscard]] std::string ModuleMapText(const Board& board);

// proc/sys/kernel/random/boot_id: another one each time the node starts.
[[nodiscard]] std::string BootIdText(std::uint64_t seed, int boot);

// What the simulator's libnvidia-ml.so.1 reads: the host root, and each GPU's address and module.
[[nodiscard]] std::string NvmlText(const Board& board, const std::string& host_root);

}  // namespace switchyard::sim
