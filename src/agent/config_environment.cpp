// SPDX-License-Identifier: Apache-2.0
// SWITCHYARD_* variables and flags as settings.
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/config_sources.h"
#include "agent/config_suggest.h"
#include "agent/config_values.h"

namespace switchyard::agent {
namespace {

constexpr absl::string_view kPrefix = "SWITCHYARD_";

// kubelet describes every Service of the namespace to a container in variables named after it.
bool IsServiceLink(absl::string_view name) {
  if (absl::EndsWith(name, "_SERVICE_HOST") || absl::StrContains(name, "_SERVICE_PORT") ||
      absl::EndsWith(name, "_PORT")) {
    return true;
  }
  const size_t port = name.find("_PORT_");
  return port != absl::string_view::npos && port + 6 < name.size() &&
         absl::ascii_isdigit(static_cast<unsigned char>(name[port + 6]));
}

void AddText(Settings& settings, const Key& key, absl::string_view text, std::string origin) {
  Result<Value> value = SplitText(key, text);
  if (!value.ok()) {
    settings.AddError(absl::StrCat(origin, ": ", key.name, ": ", value.status().message()));
    return;
  }
  settings.settings.push_back({&key, *std::move(value), std::move(origin)});
}

const Key* FindEnvironment(absl::string_view name) {
  for (const Key& key : Keys()) {
    if (EnvironmentName(key) == name) return &key;
  }
  return nullptr;
}

}  // namespace

void Settings::AddError(std::string error) {
  if (errors.size() < kMaxErrors) errors.push_back(std::move(error));
}

Settings FromEnvironment(const Environment& environment) {
  Settings settings;
  for (const auto& [name, text] : environment) {
    if (!absl::StartsWith(name, kPrefix)) continue;
    const std::string origin = absl::StrCat("environment ", name);
    if (const Key* key = FindEnvironment(name); key != nullptr) {
      AddText(settings, *key, text, origin);
    } else if (!IsServiceLink(name)) {
      std::vector<std::string> names;
      for (const Key& known : Keys()) names.push_back(EnvironmentName(known));
      settings.AddError(
          absl::StrCat(origin, ": unknown; the nearest valid one is ", Nearest(name, names)));
    }
  }
  return settings;
}

Settings FromFlags(const std::vector<std::pair<std::string, std::string>>& flags) {
  Settings settings;
  for (const auto& [name, text] : flags) {
    if (const Key* key = FindKey(name); key != nullptr) {
      AddText(settings, *key, text, absl::StrCat("flag ", FlagName(*key)));
    } else {
      settings.AddError(absl::StrCat("no key ", Quote(name)));
    }
  }
  return settings;
}

}  // namespace switchyard::agent
