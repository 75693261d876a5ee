// SPDX-License-Identifier: Apache-2.0
#pragma once

// The subcommand "demo" of switchyard-sim. One thread.

#include "sim/node/cli.h"

namespace switchyard::sim {

void AddDemoCommand(CLI::App& app, CommandLine& line);

}  // namespace switchyard::sim
