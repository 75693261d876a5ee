// SPDX-License-Identifier: Apache-2.0
#pragma once

// The helper process of a subcommand: this program again, under the name "fabric-helper".

#include "agent/config.h"
#include "fabric/helper.h"

namespace switchyard::apps {

inline fabric::HelperOptions HelperOptionsOf(const agent::Config& config) {
  fabric::HelperOptions options;
  options.command = {"/proc/self/exe", "fabric-helper"};
  options.address = config.fabric.address;
  options.fabric_library = config.fabric.library;
  options.nvml_library = config.paths.nvml;
  options.timeout = config.fabric.timeout;
  return options;
}

}  // namespace switchyard::apps
