// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a subcommand is, without the command-line library (only apps/main.cpp knows that one): its
// words for --help, the options it takes, and the function that runs it.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace switchyard::apps {

// Exit codes, the same for every subcommand.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;

struct Option {
  std::string name;   // "--size"; without dashes: positional, "ADDRESS"
  std::string value;  // "N"; "[N]": may be left out; empty: a switch (nothing for a positional)
  std::string help;
  bool required = false;
  bool many = false;  // of a positional: any number of words; Get has them with a space between
};

// A parsed command line.
struct Arguments {
  std::map<std::string, std::string> values;                  // option name -> text; switches: ""
  bool json = false;                                          // -o json
  std::string config_file;                                    // --config
  std::vector<std::pair<std::string, std::string>> settings;  // configuration key -> text, by flags

  [[nodiscard]] bool Has(const std::string& name) const { return values.count(name) != 0; }
  // Empty if not given.
  [[nodiscard]] std::string Get(const std::string& name) const {
    const auto it = values.find(name);
    return it == values.end() ? "" : it->second;
  }
};

struct Command {
  std::string name;  // "plan", "mapping set"
  std::string summary;
  std::string details;  // examples, and what the exit codes mean here
  std::vector<Option> options;
  bool has_output = true;     // takes -o table|json
  bool takes_config = false;  // takes --config and a flag for every key
  int (*run)(const Arguments&) = nullptr;
};

// One file each.
Command AgentCommand();
Command InventoryCommand();
Command HoldersCommand();
Command MappingShowCommand();
Command MappingCreateCommand();
Command MappingSetCommand();
Command PartitionsCommand();
Command PlanCommand();
Command TenanciesCommand();
Command ReleaseCommand();
Command DrainCommand();
Command ReconcileCommand();
Command JournalVerifyCommand();
Command JournalExportCommand();
Command DoctorCommand();
Command ProbeCommand();
Command ConfigValidateCommand();
Command ConfigShowCommand();
Command VersionCommand();

}  // namespace switchyard::apps
