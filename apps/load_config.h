// SPDX-License-Identifier: Apache-2.0
#pragma once

// A subcommand's configuration: --config, the environment, and its flags.

#include "agent/config_load.h"
#include "apps/command.h"
#include "base/status.h"

namespace switchyard::apps {

[[nodiscard]] Result<agent::LoadedConfig> LoadConfigOf(const Arguments& arguments);

}  // namespace switchyard::apps
