// SPDX-License-Identifier: Apache-2.0
#pragma once

// The demo: a simulated node, the real agent on it, and pods placed scenario by scenario, beside an
// allocator that only counts. Prints as it goes. One thread.

#include <cstdint>
#include <ostream>
#include <string>

#include "base/status.h"

namespace switchyard::sim {

struct DemoOptions {
  std::string agent;  // the switchyard binary
  std::string board = "hgx-h100";
  std::uint64_t seed = 1;
};

// The number of pods that Switchyard placed wrongly: a partition of the pod's size was free, and
// the pod did not get exactly one. An error if something else went wrong; the agent's log is then
// on `out`.
[[nodiscard]] Result<int> RunDemo(const DemoOptions& options, std::ostream& out);

}  // namespace switchyard::sim
