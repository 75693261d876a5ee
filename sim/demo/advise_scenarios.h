// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the demo plays in advise: scenarios, each on an empty node, as lists of steps. Pure; any
// thread.

#include <string>
#include <vector>

#include "sim/board/board.h"

namespace switchyard::sim {

struct AdviseStep {
  enum class Kind { kAddPod, kRemovePod, kFabricManagerDown, kFabricManagerUp };
  Kind kind = Kind::kAddPod;
  char pod = 'a';  // its name, and its letter in the pictures
  int gpus = 0;    // of kAddPod
};

struct AdviseScenario {
  std::string title;
  std::string remark;  // what to look at; may be empty
  std::vector<AdviseStep> steps;
};

// Four pairs; 1+1+2+4 in every order; two GPUs that are no pair; Fabric Manager down and back. The
// board needs 8 GPUs or more.
[[nodiscard]] std::vector<AdviseScenario> AdviseScenarios(const Board& board);

}  // namespace switchyard::sim
