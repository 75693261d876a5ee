// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "sim/board/built_in_boards.h"
#include "sim/node/cli.h"
#include "sim/node/daemon.h"
#include "sim/node/lifecycle.h"
#include "sim/node/picture.h"

namespace switchyard::sim {
namespace {

using Json = nlohmann::json;

std::string BoardNames() {
  return absl::StrJoin(BuiltInBoards(), ", ",
                       [](std::string* out, const auto& entry) { out->append(entry.first); });
}

void PrintUp(CommandLine& line, const UpReport& report) {
  line.Ask({{"command", "status"}}, [](const Json& status) { return StatusPicture(status); });
  const std::string dir = line.paths().dir;
  if (report.namespaces) {
    absl::PrintF("It has mounts and a network of its own; its device nodes open.\n");
  } else {
    absl::PrintF(
        "Not root (or not allowed to make namespaces): plain files for device nodes, no\n"
        "uevents, Fabric Manager on its unix socket only.\n");
  }
  absl::PrintF(
      "\nNext:\n"
      "  switchyard agent --config %s/agent.yaml\n"
      "  switchyard-sim pod add vm-a --gpus 2 --dir %s\n"
      "  switchyard-sim status --dir %s\n"
      "  switchyard-sim fault --help\n"
      "  switchyard-sim down --dir %s\n",
      dir, dir, dir, dir);
  if (report.namespaces) {
    absl::PrintF(
        "Inside, with nothing but the node's own paths:\n"
        "  switchyard-sim exec --dir %s -- switchyard agent --fabric-mode advise\n",
        dir);
  }
}

void RunDown(CommandLine& line) {
  const Result<DownReport> report = Down(line.paths());
  if (!report.ok()) return line.Finish(report.status());
  const std::string dir = line.paths().dir;
  if (!report->found) {
    absl::PrintF("%s: there is no simulated node\n", dir);
    return;
  }
  absl::PrintF("%s: %s\n", dir, report->was_running ? "down" : "was not running; removed");
  for (const std::string& folder : report->left) {
    absl::PrintF("%s stays: something is in it, or another simulator uses it\n", folder);
  }
}

}  // namespace

void AddNodeCommands(CLI::App& app, CommandLine& line) {
  auto* up = app.add_subcommand("up", "Start a simulated node in the background");
  auto options = std::make_shared<UpOptions>();
  auto iommufd = std::make_shared<std::string>("off");
  options->board = "hgx-h100";
  up->add_option("--board", options->board, "Name (" + BoardNames() + ") or a .json file")
      ->capture_default_str();
  up->add_option("--driver", options->driver,
                 "Of the GPUs: vfio-pci, nvidia, none, or a variant such as nvgrace_gpu_vfio_pci")
      ->capture_default_str();
  up->add_option("--iommufd", *iommufd, "Whether the node has /dev/iommu")
      ->check(CLI::IsMember({"on", "off"}))
      ->capture_default_str();
  up->add_option("--seed", options->seed, "Another seed, other addresses and numbers")
      ->capture_default_str();
  up->footer(
      "Examples:\n"
      "  switchyard-sim up\n"
      "  switchyard-sim up --board hgx-a100-16 --iommufd on --dir /tmp/a100\n"
      "  switchyard-sim up --board my-board.json --driver nvidia --seed 7");
  up->callback([options, iommufd, &line] {
    options->iommufd = *iommufd == "on";
    const Result<UpReport> report = Up(line.paths(), *options);
    if (!report.ok()) return line.Finish(report.status());
    PrintUp(line, *report);
  });

  auto* down = app.add_subcommand(
      "down", "End the node and remove all that `up` made, also when the simulator was killed");
  down->footer("Example:\n  switchyard-sim down --dir /tmp/a100");
  down->callback([&line] { RunDown(line); });

  auto* status = app.add_subcommand("status", "The board, Fabric Manager and kubelet");
  auto format = std::make_shared<std::string>("text");
  status->add_option("-o,--output", *format, "text or json")
      ->check(CLI::IsMember({"text", "json"}));
  status->footer("Examples:\n  switchyard-sim status\n  switchyard-sim status -o json");
  status->callback([format, &line] {
    line.Ask({{"command", "status"}}, [&](const Json& json) {
      return *format == "json" ? json.dump(2) + "\n" : StatusPicture(json);
    });
  });

  auto* exec = app.add_subcommand(
      "exec",
      "Run a command in the node's namespaces, with its vendor libraries first in the\n"
      "loader's search and SWITCHYARD_PATHS_HOST_ROOT set to its sys/ and dev/");
  auto command = std::make_shared<std::vector<std::string>>();
  exec->add_option("command", *command, "The command, after --")->required();
  exec->footer(
      "The exit code is the command's. Examples:\n"
      "  switchyard-sim exec -- switchyard agent --fabric-mode advise\n"
      "  switchyard-sim exec -- switchyard doctor\n"
      "  switchyard-sim exec -- ls -l /var/lib/kubelet/device-plugins");
  exec->callback([command, &line] { line.Finish(ExecInside(line.paths(), *command)); });

  auto* daemon = app.add_subcommand("daemon", "")->group("");  // what `up` starts
  daemon->callback([&line] { line.Finish(RunDaemon(line.paths(), /*ready_fd=*/3)); });
}

}  // namespace switchyard::sim
