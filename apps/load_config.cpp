// SPDX-License-Identifier: Apache-2.0
#include "apps/load_config.h"

#include <utility>

namespace switchyard::apps {

Result<agent::LoadedConfig> LoadConfigOf(const Arguments& arguments) {
  ASSIGN_OR_RETURN(agent::ConfigInput input, agent::ReadConfigInput(arguments.config_file));
  input.flags = arguments.settings;
  return agent::LoadConfig(input);
}

}  // namespace switchyard::apps
