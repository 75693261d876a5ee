// SPDX-License-Identifier: Apache-2.0
#pragma once

// Plays advise scenarios on one node, one after another, beside an allocator that only counts, and
// prints as it goes. Wrong is a pod that did not get exactly one partition while one of its size
// was free. One thread.

#include <ostream>
#include <set>

#include "sim/demo/advise_scenarios.h"
#include "sim/demo/demo_node.h"
#include "sim/demo/placement.h"

namespace switchyard::sim {

class AdviseStage {
 public:
  // Both must outlive it; the agent runs.
  AdviseStage(DemoNode& node, std::ostream& out)
      : node_(node), out_(out), ours_(node.board()), counting_(node.board()) {}

  [[nodiscard]] Status Play(const AdviseScenario& scenario, int number);

  [[nodiscard]] int wrong() const { return wrong_; }
  [[nodiscard]] int counting_wrong() const { return counting_wrong_; }

 private:
  void AddPod(char pod, int gpus);
  void RemoveHolderOfNoPair(char which);
  void Remove(char pod);
  Status FabricManagerDown();
  Status FabricManagerUp();
  void Clear();

  DemoNode& node_;
  std::ostream& out_;
  Placement ours_;
  Placement counting_;
  int wrong_ = 0;
  int counting_wrong_ = 0;
};

}  // namespace switchyard::sim
