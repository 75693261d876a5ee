// SPDX-License-Identifier: Apache-2.0
#include "agent/config_load.h"

#include <unistd.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "agent/config_values.h"
#include "agent/config_yaml.h"
#include "base/files.h"

namespace switchyard::agent {
namespace {

Environment ProcessEnvironment() {
  Environment variables;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::pair<std::string, std::string> variable =
        absl::StrSplit(*entry, absl::MaxSplits('=', 1));
    variables.insert(variable);
  }
  return variables;
}

void MoveInto(Settings& all, Settings more) {
  for (Setting& setting : more.settings) all.settings.push_back(std::move(setting));
  for (std::string& error : more.errors) all.AddError(std::move(error));
}

class Loader {
 public:
  explicit Loader(const ConfigInput& input) : input_(input) {
    for (const Key& key : Keys()) loaded_.origins[std::string(key.name)] = {"default"};
  }

  Result<LoadedConfig> Load() {
    Settings explicit_ones;
    if (input_.file.has_value()) MoveInto(explicit_ones, FromFile(*input_.file, input_.file_name));
    MoveInto(explicit_ones, FromEnvironment(input_.environment));
    MoveInto(explicit_ones, FromFlags(input_.flags));

    // The consumer decides which defaults and which of the predecessors' variables apply.
    Apply(explicit_ones.settings, [](const Key& key) { return key.name == "consumer"; });
    SetConsumerDefaults();
    ApplyDropIn(explicit_ones.settings);
    Apply(explicit_ones.settings, [](const Key& key) { return key.name != "consumer"; });
    CheckTogether();

    for (std::string& error : explicit_ones.errors) errors_.AddError(std::move(error));
    if (errors_.errors.empty()) return std::move(loaded_);
    return absl::InvalidArgumentError(absl::StrJoin(errors_.errors, "\n"));
  }

 private:
  void Apply(const std::vector<Setting>& settings, bool (*wanted)(const Key&)) {
    for (const Setting& setting : settings) {
      if (!wanted(*setting.key)) continue;
      const Status stored = setting.key->set(setting.value, loaded_.config);
      if (!stored.ok()) {
        errors_.AddError(
            absl::StrCat(setting.origin, ": ", setting.key->name, ": ", stored.message()));
      }
      Origins(setting.key->name).push_back(setting.origin);
    }
  }

  void SetConsumerDefaults() {
    if (loaded_.config.consumer != Consumer::kKata) return;
    loaded_.config.resources.gpu_alias = "pgpu";
    loaded_.config.resources.nvswitch_alias = "nvswitch";
    Origins("resources.aliases.gpu") = {"default of kata"};
    Origins("resources.aliases.nvswitch") = {"default of kata"};
  }

  void ApplyDropIn(const std::vector<Setting>& explicit_ones) {
    const auto decided = [&](absl::string_view key) {
      return std::any_of(explicit_ones.begin(), explicit_ones.end(),
                         [&](const Setting& setting) { return setting.key->name == key; });
    };
    DropIn drop_in = FromDropInEnvironment(loaded_.config.consumer, input_.environment, decided);
    Apply(drop_in.settings.settings, [](const Key&) { return true; });
    for (std::string& error : drop_in.settings.errors) errors_.AddError(std::move(error));
    loaded_.notes = std::move(drop_in.notes);
  }

  // Rules that concern more than one key.
  void CheckTogether() {
    const ResourcesConfig& resources = loaded_.config.resources;
    if (!resources.gpu_alias.empty() && resources.gpu_alias == resources.nvswitch_alias) {
      errors_.AddError(
          absl::StrCat(Origins("resources.aliases.nvswitch").back(),
                       ": resources.aliases.nvswitch: ", Quote(resources.nvswitch_alias),
                       " is the name of the GPUs too: give GPUs and NVSwitches different names"));
    }
    if (loaded_.config.consumer != Consumer::kKata) return;
    // The resource name is a CDI kind there, and a CDI class begins with a letter.
    const auto check = [&](absl::string_view key, absl::string_view name) {
      if (name.empty() || absl::ascii_isalpha(static_cast<unsigned char>(name[0]))) return;
      errors_.AddError(absl::StrCat(Origins(key).back(), ": ", key, ": ", Quote(name),
                                    " must begin with a letter: consumer kata uses it in CDI"));
    };
    check("resources.aliases.gpu", resources.gpu_alias);
    check("resources.aliases.nvswitch", resources.nvswitch_alias);
    for (const auto& [id, name] : resources.names) check("resources.names", name);
  }

  std::vector<std::string>& Origins(absl::string_view key) {
    return loaded_.origins[std::string(key)];
  }

  const ConfigInput& input_;
  LoadedConfig loaded_;
  Settings errors_;  // its errors only
};

}  // namespace

Result<ConfigInput> ReadConfigInput(const std::string& file_path) {
  ConfigInput input;
  input.environment = ProcessEnvironment();
  if (file_path.empty()) return input;
  input.file_name = file_path;
  ASSIGN_OR_RETURN(input.file, ReadFile(file_path, kMaxConfigBytes));
  return input;
}

Result<LoadedConfig> LoadConfig(const ConfigInput& input) { return Loader(input).Load(); }

}  // namespace switchyard::agent
