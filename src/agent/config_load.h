// SPDX-License-Identifier: Apache-2.0
#pragma once

// The configuration from all its places. Precedence, lowest first: built-in defaults, the
// environment of the plugins this agent replaces, the file, SWITCHYARD_* variables, flags.

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/config.h"
#include "agent/config_sources.h"
#include "base/status.h"

namespace switchyard::agent {

struct ConfigInput {
  std::string file_name;            // for messages
  std::optional<std::string> file;  // its text
  Environment environment;
  std::vector<std::pair<std::string, std::string>> flags;  // key name -> text
};

// Reads the file (empty path: none) and the process environment; flags are the caller's.
[[nodiscard]] Result<ConfigInput> ReadConfigInput(const std::string& file_path);

struct LoadedConfig {
  Config config;
  // Key -> every place that sets it, lowest precedence first: the last one counts. "default",
  // "default of kata", "FILE:LINE", "environment NAME", "flag --name".
  std::map<std::string, std::vector<std::string>> origins;
  std::vector<std::string> notes;  // for the log
};

// kInvalidArgument: one line for each thing wrong, each with the place, the key, the value and the
// rule.
[[nodiscard]] Result<LoadedConfig> LoadConfig(const ConfigInput& input);

}  // namespace switchyard::agent
