// SPDX-License-Identifier: Apache-2.0
// `switchyard`: reads the command line and runs one subcommand. Without one of its own, the program
// is also the helper process that loads vendor libraries (fabric/helper.h).
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "agent/config_keys.h"
#include "agent/config_suggest.h"
#include "apps/command.h"
#include "apps/output.h"
#include "fabric/helper.h"

namespace switchyard::apps {
namespace {

constexpr char kExitCodes[] =
    "Exit codes: 0 done; 1 failed, standard error says why; 2 wrong usage.";

// The first word of commands that have two.
struct Parent {
  const char* name;
  const char* summary;
  const char* examples;
};
constexpr Parent kParents[] = {
    {"mapping", "Which GPU sits where on the board",
     "Examples:\n"
     "  switchyard mapping show\n"
     "  switchyard mapping create                # from NVML, once\n"
     "  switchyard mapping set 0000:0f:00.0 5    # by hand"},
    {"journal", "The tenancies' record in the state file",
     "Examples:\n"
     "  switchyard journal verify\n"
     "  switchyard journal export > journal.json"},
    {"config", "The agent's configuration",
     "Examples:\n"
     "  switchyard config show --config /etc/switchyard/config.yaml\n"
     "  switchyard config validate /etc/switchyard/config.yaml"},
};
const Parent& ParentOf(absl::string_view name) {
  for (const Parent& parent : kParents) {
    if (name == parent.name) return parent;
  }
  return kParents[0];
}

std::vector<Command> Commands() {
  return {
      AgentCommand(),         InventoryCommand(),      HoldersCommand(),    MappingShowCommand(),
      MappingCreateCommand(), MappingSetCommand(),     PartitionsCommand(), PlanCommand(),
      TenanciesCommand(),     ReleaseCommand(),        DrainCommand(),      ReconcileCommand(),
      JournalVerifyCommand(), JournalExportCommand(),  DoctorCommand(),     ProbeCommand(),
      ConfigShowCommand(),    ConfigValidateCommand(), VersionCommand()};
}

// The parser's tree, and what it found.
class CommandLine {
 public:
  explicit CommandLine(absl::string_view called)
      : app_("Hands GPUs to virtual machines by whole NVLink partitions.", "switchyard") {
    app_.require_subcommand(1);
    app_.footer(std::string("switchyard COMMAND --help has examples.\n") + kExitCodes);
    app_.set_version_flag("--version", SWITCHYARD_VERSION);
    for (Command& command : commands_) Add(command, called);
  }

  // Returns the command to run, or nothing and the exit code.
  const Command* Parse(int argc, char** argv, int& exit_code) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::Success& asked) {  // --help, --version
      exit_code = app_.exit(asked);
      return nullptr;
    } catch (const CLI::ParseError& error) {
      exit_code = UsageError(absl::StrCat(Problem(error), "; see ", Path(Deepest()), " --help"));
      return nullptr;
    }
    return chosen_;
  }

  [[nodiscard]] const Arguments& arguments() const { return arguments_; }

 private:
  // Options only for the one that is called, by its first word: making all of them takes longer
  // than the rest of the agent's command line.
  void Add(const Command& command, absl::string_view called) {
    CLI::App* parent = &app_;
    const std::vector<std::string> words = absl::StrSplit(command.name, ' ');
    if (words.size() == 2) {
      parent = parents_[words[0]];
      if (parent == nullptr) parent = parents_[words[0]] = AddParent(words[0]);
    }
    CLI::App* sub = parent->add_subcommand(words.back(), command.summary);
    sub->footer(absl::StrCat(command.details, "\n", kExitCodes));
    sub->callback([this, chosen = &command] { chosen_ = chosen; });
    if (words.front() != called) return;
    bool writes_file = false;  // its --output is a file; -o is the format all the same
    for (const Option& option : command.options) {
      AddOption(*sub, option);
      writes_file = writes_file || option.name == "--output";
    }
    if (command.has_output) {
      sub->add_option_function<std::string>(
             writes_file ? "-o" : "-o,--output",
             [this](const std::string& text) { arguments_.json = text == "json"; }, "table or json")
          ->check(CLI::IsMember({"table", "json"}))
          ->type_name("FORMAT");
    }
    if (command.takes_config) AddConfigOptions(*sub, command.name == "agent");
  }

  CLI::App* AddParent(const std::string& name) {
    const Parent& words = ParentOf(name);
    CLI::App* parent = app_.add_subcommand(name, words.summary);
    parent->require_subcommand(1);
    parent->footer(absl::StrCat(words.examples, "\n", kExitCodes));
    return parent;
  }

  void AddOption(CLI::App& sub, const Option& option) {
    const std::string name = option.name;
    const bool positional = !absl::StartsWith(name, "-");
    if (!positional && option.value.empty()) {
      sub.add_flag_callback(name, [this, name] { arguments_.values[name] = ""; }, option.help);
      return;
    }
    if (option.many) {
      sub.add_option_function<std::vector<std::string>>(
             name,
             [this, name](const std::vector<std::string>& texts) {
               arguments_.values[name] = absl::StrJoin(texts, " ");
             },
             option.help)
          ->type_name("");
      return;
    }
    sub.add_option_function<std::string>(
           name, [this, name](const std::string& text) { arguments_.values[name] = text; },
           option.help)
        ->type_name(positional ? "" : option.value)
        ->expected(absl::StartsWith(option.value, "[") ? 0 : 1, 1)
        ->required(option.required);
  }

  void AddConfigOptions(CLI::App& sub, bool shown) {
    sub.add_option("--config", arguments_.config_file, "configuration file (YAML)")
        ->type_name("FILE");
    const agent::Config defaults;
    for (const agent::Key& key : agent::Keys()) {
      const std::string name(key.name);
      const std::string value = agent::JoinValue(key, key.get(defaults));
      sub.add_option_function<std::string>(
             agent::FlagName(key),
             [this, name](const std::string& text) {
               arguments_.settings.emplace_back(name, text);
             },
             absl::StrCat(key.doc, " (", key.type, "; default ", value.empty() ? "empty" : value,
                          ")"))
          ->type_name("")
          ->group(shown ? "Configuration (file: section.keyName, environment: "
                          "SWITCHYARD_SECTION_KEY_NAME)"
                        : "");
    }
  }

  const CLI::App* Deepest() const {
    const CLI::App* app = &app_;
    while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
    return app;
  }

  static std::string Path(const CLI::App* app) {
    const std::string& name = app->get_name();
    return app->get_parent() == nullptr ? name : absl::StrCat(Path(app->get_parent()), " ", name);
  }

  // The parser's own message, and the nearest valid name for one it does not know.
  std::string Problem(const CLI::ParseError& error) const {
    // A mistyped option may show first as a required one that is missing.
    const std::vector<std::string> unknown = app_.remaining(true);
    if (unknown.empty()) return Untangled(error.what());
    const CLI::App* app = Deepest();
    std::vector<std::string> names;
    for (const CLI::Option* option : app->get_options()) names.push_back(option->get_name());
    for (const CLI::App* sub : app->get_subcommands(nullptr)) names.push_back(sub->get_name());
    const std::string word = unknown.front().substr(0, unknown.front().find('='));
    return absl::StrCat("unexpected ", word, "; the nearest valid one is ",
                        agent::Nearest(word, names));
  }

  static std::string Untangled(std::string message) {
    for (char& c : message) c = c == '\n' ? ' ' : c;
    return message;
  }

  std::vector<Command> commands_ = Commands();
  Arguments arguments_;
  const Command* chosen_ = nullptr;
  std::map<std::string, CLI::App*> parents_;  // "mapping", "journal", "config"
  CLI::App app_;
};

int Main(int argc, char** argv) {
  if (argc == 2 && absl::string_view(argv[1]) == "fabric-helper") return fabric::RunFabricHelper(3);
  int exit_code = kExitOk;
  int (*run)(const Arguments&) = nullptr;
  Arguments arguments;
  {
    CommandLine line(argc > 1 ? argv[1] : "");  // its memory is given back before the agent begins
    const Command* command = line.Parse(argc, argv, exit_code);
    if (command == nullptr) return exit_code;
    run = command->run;
    arguments = line.arguments();
  }
  return run(arguments);
}

}  // namespace
}  // namespace switchyard::apps

int main(int argc, char** argv) {
  try {
    return switchyard::apps::Main(argc, argv);
  } catch (const std::exception& error) {  // out of memory; nothing of ours throws
    std::fprintf(stderr, "switchyard: %s\n", error.what());
    return switchyard::apps::kExitFailed;
  }
}
