// SPDX-License-Identifier: Apache-2.0
#include "sim/demo/advise_scenarios.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace switchyard::sim {
namespace {

using Kind = AdviseStep::Kind;

// Pods a, b, c... of these sizes, one after another.
std::vector<AdviseStep> Pods(const std::vector<int>& sizes, char first = 'a') {
  std::vector<AdviseStep> steps;
  steps.reserve(sizes.size());
  for (const int size : sizes) steps.push_back({Kind::kAddPod, first++, size});
  return steps;
}

void Append(std::vector<AdviseStep>& steps, const std::vector<AdviseStep>& more) {
  steps.insert(steps.end(), more.begin(), more.end());
}

// A single GPU for every pod; once all are placed, the demo frees the GPUs of two modules that are
// no pair. Which pods hold them is known only then, so the scenario asks for it by letter: the demo
// removes the holders of these two modules under the names '1' and '2'.
std::vector<AdviseStep> NoPairSteps(const Board& board) {
  std::vector<AdviseStep> steps = Pods(std::vector<int>(board.devices.size(), 1));
  steps.push_back({Kind::kRemovePod, '1', 0});
  steps.push_back({Kind::kRemovePod, '2', 0});
  steps.push_back({Kind::kAddPod, 'z', 2});
  return steps;
}

}  // namespace

std::vector<AdviseScenario> AdviseScenarios(const Board& board) {
  std::vector<AdviseScenario> scenarios;
  scenarios.push_back({"four pods of 2 GPUs", "", Pods({2, 2, 2, 2})});

  std::vector<int> sizes = {1, 1, 2, 4};
  do {
    scenarios.push_back(
        {absl::StrCat(absl::StrJoin(sizes, "+"), " GPUs, in this order"), "", Pods(sizes)});
  } while (std::next_permutation(sizes.begin(), sizes.end()));

  scenarios.push_back({"a pod of 2 GPUs when the two free ones are no pair",
                       "no partition is free: kubelet gives what is left, and the agent warns",
                       NoPairSteps(board)});

  AdviseScenario down{
      "Fabric Manager goes down after its table was read once", "the last table read is used", {}};
  down.steps = {{Kind::kFabricManagerDown, 0, 0}};
  Append(down.steps, Pods({2, 4, 1, 1}));
  scenarios.push_back(down);

  AdviseScenario back{"Fabric Manager comes back", "", {}};
  back.steps = {{Kind::kFabricManagerUp, 0, 0}};
  Append(back.steps, Pods({4, 2, 2}));
  scenarios.push_back(back);
  return scenarios;
}

}  // namespace switchyard::sim
