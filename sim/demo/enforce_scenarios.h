// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the demo plays in enforce: scenarios, each on a node of its own. Pure; any thread.

#include <string>
#include <vector>

#include "sim/board/board.h"
#include "sim/demo/enforce_steps.h"
#include "sim/node/agent_yaml.h"

namespace switchyard::sim {

struct EnforceScenario {
  std::string title;
  std::string remark;  // what to look at
  std::vector<EnforceStep> steps;
  YamlOverrides config = {};  // of the agent, beside fabric.mode
};

// The board needs 8 GPUs or more.
[[nodiscard]] std::vector<EnforceScenario> EnforceScenarios(const Board& board);

}  // namespace switchyard::sim
