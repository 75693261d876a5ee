// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "absl/strings/str_format.h"
#include "sim/node/cli.h"
#include "sim/node/daemon.h"
#include "sim/node/sim_node.h"

namespace switchyard::sim {
namespace {

// In the foreground, until a signal; the folder goes with it if it was not there before.
void RunPart(CommandLine& line, SimNodeOptions options,
             const std::function<void(const SimNode&)>& ready) {
  options.dir = line.paths().dir;
  const bool made = !std::filesystem::exists(options.dir);
  const std::string dir = options.dir;
  line.Finish(RunNode(std::move(options), [&](const SimNode& node) {
    ready(node);
    std::fflush(stdout);
  }));
  std::error_code ignored;
  if (made) std::filesystem::remove_all(dir, ignored);
}

std::shared_ptr<SimNodeOptions> Only(bool sysfs, bool fm, bool kubelet) {
  auto options = std::make_shared<SimNodeOptions>();
  options->with_sysfs = sysfs;
  options->with_fm = fm;
  options->with_kubelet = kubelet;
  return options;
}

void AddBoard(CLI::App* command, SimNodeOptions& options) {
  command->add_option("--board", options.board, "Name or .json file")->capture_default_str();
  command->add_option("--seed", options.seed, "Of the addresses")->capture_default_str();
}

void AddFm(CLI::App& app, CommandLine& line) {
  auto options = Only(false, true, false);
  auto* fm = app.add_subcommand("fm", "Fabric Manager alone, in the foreground");
  AddBoard(fm, *options);
  fm->add_option("--tcp", options->fm_tcp, "Also listen here: 127.0.0.1:6666");
  auto codes = std::make_shared<std::string>();
  fm->add_option("--return-codes", *codes, "Of which generation; default: the board's")
      ->check(CLI::IsMember({"hopper", "blackwell"}));
  fm->footer(
      "The libraries are in DIR/lib, the unix socket is DIR/fm/socket; `fabric` and\n"
      "`fault fm` work on it. Example:\n"
      "  switchyard-sim fm --board hgx-b200 --tcp 127.0.0.1:6666 --dir /tmp/fm");
  fm->callback([options, codes, &line] {
    if (*codes == "hopper") options->fm_return_codes = ReturnCodes::kHopper;
    if (*codes == "blackwell") options->fm_return_codes = ReturnCodes::kBlackwell;
    RunPart(line, *options, [](const SimNode& node) {
      absl::PrintF("Fabric Manager of %s: unix:%s %s\nlibrary: %s\n", node.board().name,
                   node.paths().fm_socket(), node.fm().tcp_address(), node.paths().nvfm());
    });
  });
}

void AddKubelet(CLI::App& app, CommandLine& line) {
  auto options = Only(false, false, true);
  options->board.clear();
  auto* kubelet = app.add_subcommand("kubelet", "kubelet alone, in the foreground");
  kubelet->add_option("--device-plugins", options->device_plugins,
                      "Folder of the plugins' sockets; default DIR/kubelet/device-plugins");
  kubelet->add_option("--pod-resources", options->pod_resources,
                      "Folder of PodResources' socket; default DIR/kubelet/pod-resources");
  kubelet->add_option("--seed", options->seed, "Of every random order")->capture_default_str();
  kubelet->footer(
      "`pod` and `fault kubelet` work on it. Example, where real devices are:\n"
      "  switchyard-sim kubelet --dir /tmp/kubelet \\\n"
      "    --device-plugins /var/lib/kubelet/device-plugins \\\n"
      "    --pod-resources /var/lib/kubelet/pod-resources");
  kubelet->callback([options, &line] {
    RunPart(line, *options, [&](const SimNode& node) {
      absl::PrintF("kubelet: plugins register in %s\n", options->device_plugins.empty()
                                                            ? node.paths().device_plugins()
                                                            : options->device_plugins);
    });
  });
}

std::shared_ptr<std::string> AddDevices(CLI::App* command, SimNodeOptions& options) {
  AddBoard(command, options);
  command->add_option("--driver", options.driver, "Of the GPUs")->capture_default_str();
  auto iommufd = std::make_shared<std::string>("off");
  command->add_option("--iommufd", *iommufd, "Whether the node has /dev/iommu")
      ->check(CLI::IsMember({"on", "off"}));
  return iommufd;
}

void AddHardware(CLI::App& app, CommandLine& line) {
  auto options = Only(true, true, false);
  auto* hardware = app.add_subcommand(
      "hardware", "Devices and Fabric Manager, for a real kubelet; in the foreground");
  auto iommufd = AddDevices(hardware, *options);
  hardware->add_option("--tcp", options->fm_tcp, "Fabric Manager also listens here");
  hardware->add_flag("--uevents", options->uevents,
                     "Send the kernel's uevents. Only as root, and in a network namespace of its "
                     "own: every listener there hears them");
  hardware->footer(
      "`fault`, `fabric` and `status` work on it. Example, in namespaces made for it:\n"
      "  switchyard-sim hardware --board hgx-h100 --uevents --tcp 127.0.0.1:6666 --dir /run/sim");
  hardware->callback([options, iommufd, &line] {
    options->iommufd = *iommufd == "on";
    RunPart(line, *options, [](const SimNode& node) {
      absl::PrintF("hardware of %s: %s, unix:%s %s\n", node.board().name, node.paths().host_root(),
                   node.paths().fm_socket(), node.fm().tcp_address());
    });
  });
}

void AddSysfs(CLI::App& app, CommandLine& line) {
  auto options = Only(true, false, false);
  auto* sysfs = app.add_subcommand("sysfs", "Write a node's sys/ and dev/ to a folder, and end");
  auto iommufd = AddDevices(sysfs, *options);
  sysfs->footer(
      "The folder is yours to remove. Example:\n"
      "  switchyard-sim sysfs --board hgx-h100 --dir /tmp/tree\n"
      "  switchyard inventory --host-root /tmp/tree/root");
  sysfs->callback([options, iommufd, &line] {
    options->iommufd = *iommufd == "on";
    options->dir = line.paths().dir;
    const Result<std::unique_ptr<SimNode>> node = SimNode::Create(*options);
    if (!node.ok()) return line.Finish(node.status());
    absl::PrintF("%s\n", (*node)->paths().host_root());
  });
}

}  // namespace

void AddPartCommands(CLI::App& app, CommandLine& line) {
  AddFm(app, line);
  AddKubelet(app, line);
  AddHardware(app, line);
  AddSysfs(app, line);
}

}  // namespace switchyard::sim
