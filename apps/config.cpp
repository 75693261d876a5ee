// SPDX-License-Identifier: Apache-2.0
// `switchyard config show` and `config validate`.
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/config_keys.h"
#include "apps/command.h"
#include "apps/load_config.h"
#include "apps/output.h"

namespace switchyard::apps {
namespace {

using nlohmann::ordered_json;

ordered_json ValueJson(const agent::Key& key, const agent::Value& value) {
  switch (key.kind) {
    case agent::KeyKind::kText:
      return value.text;
    case agent::KeyKind::kList:
      return value.list;
    case agent::KeyKind::kMap:
      break;
  }
  ordered_json map = ordered_json::object();
  for (const auto& [name, text] : value.map) map[name] = text;
  return map;
}

int ShowJson(const agent::LoadedConfig& loaded) {
  ordered_json settings = ordered_json::array();
  for (const agent::Key& key : agent::Keys()) {
    std::vector<std::string> places = loaded.origins.at(std::string(key.name));
    const std::string source = places.back();
    places.pop_back();
    settings.push_back({{"key", std::string(key.name)},
                        {"value", ValueJson(key, key.get(loaded.config))},
                        {"source", source},
                        {"overrides", places}});
  }
  PrintJson({{"settings", settings}, {"notes", loaded.notes}});
  return kExitOk;
}

int Show(const Arguments& arguments) {
  const Result<agent::LoadedConfig> loaded = LoadConfigOf(arguments);
  if (!loaded.ok()) return Fail(loaded.status());
  if (arguments.json) return ShowJson(*loaded);
  Table table({"KEY", "VALUE", "SOURCE"});
  for (const agent::Key& key : agent::Keys()) {
    table.Add({std::string(key.name), agent::JoinValue(key, key.get(loaded->config)),
               loaded->origins.at(std::string(key.name)).back()});
  }
  Print(table.ToString());
  for (const std::string& note : loaded->notes) Print(absl::StrCat("note: ", note));
  return kExitOk;
}

int Validate(const Arguments& arguments) {
  Arguments with_file = arguments;
  if (arguments.Has("FILE")) with_file.config_file = arguments.Get("FILE");
  const Result<agent::LoadedConfig> loaded = LoadConfigOf(with_file);
  if (arguments.json) {
    std::vector<std::string> errors;
    if (!loaded.ok()) errors = absl::StrSplit(loaded.status().message(), '\n');
    PrintJson({{"valid", loaded.ok()}, {"errors", errors}});
    return loaded.ok() ? kExitOk : kExitFailed;
  }
  if (!loaded.ok()) return Fail(loaded.status());
  Print("the configuration is valid");
  return kExitOk;
}

}  // namespace

Command ConfigShowCommand() {
  Command command;
  command.name = "config show";
  command.summary = "Show every key, its value and where the value comes from";
  command.details =
      "Examples:\n"
      "  switchyard config show --config /etc/switchyard/config.yaml\n"
      "  SWITCHYARD_LOG_LEVEL=debug switchyard config show -o json\n"
      "Takes every configuration flag of `switchyard agent`.";
  command.takes_config = true;
  command.run = Show;
  return command;
}

Command ConfigValidateCommand() {
  Command command;
  command.name = "config validate";
  command.summary = "Check a configuration, the environment included";
  command.details =
      "Examples:\n"
      "  switchyard config validate /etc/switchyard/config.yaml\n"
      "  switchyard config validate --config config.yaml -o json\n"
      "Takes every configuration flag of `switchyard agent`. Exit code 1: it is not valid.";
  command.options = {{"FILE", "", "the file; the same as --config"}};
  command.takes_config = true;
  command.run = Validate;
  return command;
}

}  // namespace switchyard::apps
