// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "sim/node/cli.h"
#include "sim/node/picture.h"

namespace switchyard::sim {
namespace {

using Json = nlohmann::json;

struct PodArguments {
  std::string name;
  std::string ns = "default";
  int gpus = 1;
  std::string resource;
  int numa = -1;
  int wait_s = 10;
  std::string output = "text";
};

// Prints a pod; one that was not admitted is a failure.
CommandLine::Print PrintPod(CommandLine& line, std::shared_ptr<PodArguments> pod) {
  return [&line, pod](const Json& answer) {
    if (!answer["admitted"]) line.exit_code = 1;
    return pod->output == "json" ? answer.dump(2) + "\n" : PodPicture(answer);
  };
}

CLI::App* AddPodCommand(CLI::App& parent, const char* name, const char* help, PodArguments& pod) {
  auto* command = parent.add_subcommand(name, help)->fallthrough();
  command->add_option("NAME", pod.name, "The pod's name")->required();
  command->add_option("-n,--namespace", pod.ns, "Its namespace")->capture_default_str();
  return command;
}

void AddOutput(CLI::App* command, std::string& output) {
  command->add_option("-o,--output", output, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
}

void AddWait(CLI::App* command, PodArguments& pod) {
  command->add_option("--wait", pod.wait_s, "Seconds to wait for a plugin to register")
      ->check(CLI::Range(0, 600))
      ->capture_default_str();
}

void AddAdd(CLI::App& parent, CommandLine& line) {
  auto pod = std::make_shared<PodArguments>();
  auto* add = AddPodCommand(parent, "add", "Admit a pod, and print what it was given", *pod);
  add->add_option("--gpus", pod->gpus, "How many GPUs")->capture_default_str();
  add->add_option("--resource", pod->resource, "Default: the only GPU resource there is");
  add->add_option("--numa", pod->numa, "Align to this NUMA node, as the topology manager would");
  AddWait(add, *pod);
  AddOutput(add, pod->output);
  add->footer(
      "Exit code 1 if the pod was not admitted. Examples:\n"
      "  switchyard-sim pod add vm-a --gpus 2\n"
      "  switchyard-sim pod add vm-b --gpus 4 --numa 1 -o json");
  add->callback([pod, &line] {
    Json request = {{"command", "pod.add"},
                    {"name", pod->name},
                    {"namespace", pod->ns},
                    {"gpus", pod->gpus},
                    {"waitMs", pod->wait_s * 1000}};
    if (!pod->resource.empty()) request["resource"] = pod->resource;
    if (pod->numa >= 0) request["numa"] = pod->numa;
    line.Ask(request, PrintPod(line, pod));
  });
}

void AddPod(CLI::App& app, CommandLine& line) {
  auto* pods = app.add_subcommand("pod", "Pods of the node");
  pods->require_subcommand(1)->fallthrough();
  pods->footer(
      "Examples:\n"
      "  switchyard-sim pod add vm-a --gpus 2\n"
      "  switchyard-sim pod list\n"
      "  switchyard-sim pod remove vm-a");
  AddAdd(*pods, line);

  auto gone = std::make_shared<PodArguments>();
  auto* remove = AddPodCommand(*pods, "remove", "A pod has ended", *gone);
  remove->footer("Example:\n  switchyard-sim pod remove vm-a");
  remove->callback([gone, &line] {
    line.Ask({{"command", "pod.remove"}, {"name", gone->name}, {"namespace", gone->ns}});
  });

  auto again = std::make_shared<PodArguments>();
  auto* readmit =
      AddPodCommand(*pods, "readmit", "Admit a pod again after a reboot: no new Allocate", *again);
  AddOutput(readmit, again->output);
  AddWait(readmit, *again);
  readmit->footer(
      "Exit code 1 if the pod was not admitted. Example:\n"
      "  switchyard-sim fault reboot\n"
      "  switchyard-sim pod readmit vm-a");
  readmit->callback([again, &line] {
    line.Ask({{"command", "pod.readmit"},
              {"name", again->name},
              {"namespace", again->ns},
              {"waitMs", again->wait_s * 1000}},
             PrintPod(line, again));
  });

  auto died = std::make_shared<PodArguments>();
  auto* restart =
      AddPodCommand(*pods, "restart", "A pod's containers die and start again: no Allocate", *died);
  AddOutput(restart, died->output);
  restart->footer("Example:\n  switchyard-sim pod restart vm-a");
  restart->callback([died, &line] {
    line.Ask({{"command", "pod.restart"}, {"name", died->name}, {"namespace", died->ns}},
             PrintPod(line, died));
  });

  auto listed = std::make_shared<PodArguments>();
  auto* list = pods->add_subcommand("list", "All pods, rejected ones included")->fallthrough();
  AddOutput(list, listed->output);
  list->footer("Examples:\n  switchyard-sim pod list\n  switchyard-sim pod list -o json");
  list->callback([listed, &line] {
    line.Ask({{"command", "pod.list"}}, [&](const Json& answer) {
      if (listed->output == "json") return answer.dump(2) + "\n";
      std::string text;
      for (const Json& pod : answer) absl::StrAppend(&text, PodPicture(pod));
      return text;
    });
  });
}

void AddFabric(CLI::App& app, CommandLine& line) {
  auto* fabric = app.add_subcommand(
      "fabric", "Fabric Manager's table, and partitions that an operator activates");
  fabric->require_subcommand(1)->fallthrough();
  fabric->footer(
      "Examples:\n"
      "  switchyard-sim fabric list\n"
      "  switchyard-sim fabric activate 3 5\n"
      "  switchyard-sim fabric deactivate 3");
  auto* table = fabric->add_subcommand("list", "The table")->alias("show")->fallthrough();
  table->footer("Example:\n  switchyard-sim fabric list");
  table->callback([&line] {
    line.Ask({{"command", "status"}}, [](const Json& status) -> std::string {
      if (!status.contains("fm")) return "this simulator has no Fabric Manager\n";
      return absl::StrCat(FabricPicture(status["fm"]), TablePicture(status["fm"]));
    });
  });
  for (const char* name : {"activate", "deactivate"}) {
    auto ids = std::make_shared<std::vector<int>>();
    auto* command = fabric->add_subcommand(name, "Partitions by their ids")->fallthrough();
    command->add_option("ID", *ids, "Partition ids")->required();
    command->footer(absl::StrCat(
        "Exit code 1 if Fabric Manager refuses; those before that one are done. Example:\n"
        "  switchyard-sim fabric ",
        name, " 3 5"));
    command->callback(
        [name, ids, &line] { line.Ask({{"command", absl::StrCat("fm.", name)}, {"ids", *ids}}); });
  }
}

}  // namespace

void AddPodCommands(CLI::App& app, CommandLine& line) {
  AddPod(app, line);
  AddFabric(app, line);
}

}  // namespace switchyard::sim
