// SPDX-License-Identifier: Apache-2.0
#pragma once

// The demo: simulated nodes, the real agent on them, and pods placed scenario by scenario: in
// advise beside an allocator that only counts, in enforce with what Fabric Manager has active, and
// with what can go wrong. Prints as it goes.

#include <cstdint>
#include <ostream>
#include <string>

#include "base/status.h"

namespace switchyard::sim {

struct DemoOptions {
  std::string agent;  // the switchyard binary
  std::string board = "hgx-h100";
  std::uint64_t seed = 1;
  std::string only = {};  // "advise" or "enforce"; empty: both
};

// How often something was wrong: in advise a pod that did not get exactly one partition while one
// of its size was free, in enforce each line that shows something that must not be. An error if
// something else went wrong; the agent's log is then on `out`.
[[nodiscard]] Result<int> RunDemo(const DemoOptions& options, std::ostream& out);

}  // namespace switchyard::sim
