// SPDX-License-Identifier: Apache-2.0
#pragma once

// What each way of configuring says, as settings in the order of precedence, before anything is
// stored: file, environment, flags, and the environment of the plugins that this one replaces.
// Pure.

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "agent/config_keys.h"
#include "base/status.h"

namespace switchyard::agent {

// One value from one place.
struct Setting {
  const Key* key = nullptr;
  Value value;
  std::string origin;  // "FILE:LINE", "environment NAME", "flag --name"
};

// Settings and, apart from them, what was wrong: one line each, at most kMaxErrors.
struct Settings {
  std::vector<Setting> settings;
  std::vector<std::string> errors;
  void AddError(std::string error);
};
inline constexpr size_t kMaxErrors = 20;

using Environment = std::map<std::string, std::string>;

[[nodiscard]] Settings FromFile(absl::string_view text, absl::string_view file_name);

// SWITCHYARD_*; one that is no key is an error, except those that kubelet makes of a Service whose
// name begins with "switchyard" (SWITCHYARD_SERVICE_HOST, SWITCHYARD_PORT_9417_TCP ...).
[[nodiscard]] Settings FromEnvironment(const Environment& environment);

// Key name -> text.
[[nodiscard]] Settings FromFlags(const std::vector<std::pair<std::string, std::string>>& flags);

// The predecessors' variables that `consumer` knows. `decided`: whether a place of higher
// precedence sets this key. Notes are for the log.
struct DropIn {
  Settings settings;
  std::vector<std::string> notes;
};
[[nodiscard]] DropIn FromDropInEnvironment(
    Consumer consumer, const Environment& environment,
    const std::function<bool(absl::string_view key)>& decided);

}  // namespace switchyard::agent
