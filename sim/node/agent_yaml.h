// SPDX-License-Identifier: Apache-2.0
#pragma once

// A configuration for an agent that runs beside a simulated node, outside of its namespaces. Pure;
// any thread.

#include <map>
#include <string>

#include "sim/node/paths.h"

namespace switchyard::sim {

// Keys as in the product's configuration, dotted ("fabric.mode"), values as YAML ("off", "\"0\"",
// "{gpu: pgpu}"); they replace or add. "consumer" has no dot.
using YamlOverrides = std::map<std::string, std::string>;

[[nodiscard]] std::string AgentYaml(const NodePaths& paths, const YamlOverrides& overrides = {});

}  // namespace switchyard::sim
