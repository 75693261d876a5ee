// SPDX-License-Identifier: Apache-2.0
#pragma once

// What an enforce scenario is played on: a node of its own, and what the demo itself knows of it:
// who has which GPUs, which processes run, and so what Fabric Manager must list. After every step
// it shows and judges that list. The steps (enforce_steps.h) work on it. One thread.

#include <map>
#include <ostream>
#include <set>
#include <string>

#include "absl/strings/string_view.h"
#include "sim/demo/demo_node.h"
#include "sim/demo/fabric_judge.h"
#include "sim/demo/placement.h"

namespace switchyard::sim {

struct EnforceStage {
  // Both must outlive it.
  EnforceStage(DemoNode& on, std::ostream& to)
      : node(on), out(to), placement(on.board()), judge(on.board()) {}

  // A line of what has happened, with what is active now; WRONG if that is not as it must be.
  void Show(absl::string_view what);
  // What the product says, below the line.
  void Quote(absl::string_view message);
  void QuoteEvent(const std::string& event);  // WRONG if it does not come
  void Wrong(absl::string_view why);

  // A pod that has its GPUs, in a line that begins with `what`; WRONG unless they are one partition
  // and its container runs.
  void Placed(char pod, absl::string_view what, const PodStatus& status);
  // One that must be refused with a message that has `because` in it.
  void Refused(absl::string_view what, const PodStatus& status, absl::string_view because);
  // Whoever had GPUs does not any more.
  void Left(char who);

  DemoNode& node;
  std::ostream& out;
  Placement placement;
  FabricJudge judge;
  std::map<char, PciAddress> held;  // by a process of that pod
  std::set<char> ended;             // pods that are gone while their process runs
  int wrong = 0;
};

// In lines of at most 100 columns, words kept whole; ends in '\n'.
[[nodiscard]] std::string Wrapped(absl::string_view text, size_t indent);

// Of an active partition that somebody else activated, in the place of a pod's letter.
inline constexpr char kSomebodyElse = '*';

}  // namespace switchyard::sim
