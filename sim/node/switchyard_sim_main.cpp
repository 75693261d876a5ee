// SPDX-License-Identifier: Apache-2.0
// switchyard-sim: a node with GPUs, NVSwitches, Fabric Manager and kubelet, on a machine that has
// none of them.
#include <CLI/CLI.hpp>
#include <string>

#include "sim/demo/cli_demo.h"
#include "sim/node/cli.h"

namespace {

// At the end of every subcommand's --help.
void AddExitCodes(CLI::App& app) {
  constexpr char kExitCodes[] = "Exit codes: 0 ok, 1 failed, 2 wrong usage.";
  const std::string footer = app.get_footer();
  app.footer(footer.empty() ? kExitCodes : footer + "\n" + kExitCodes);
  for (CLI::App* command : app.get_subcommands({})) AddExitCodes(*command);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("A simulated GPU node: sysfs, Fabric Manager, vendor libraries and kubelet");
  app.name("switchyard-sim");
  app.require_subcommand(1);
  app.fallthrough();
  switchyard::sim::CommandLine line;
  app.add_option("--dir", line.dir, "The node's folder; a short path")
      ->envname("SIM_DIR")
      ->default_val("/tmp/switchyard-sim");
  switchyard::sim::AddNodeCommands(app, line);
  switchyard::sim::AddPodCommands(app, line);
  switchyard::sim::AddFaultCommands(app, line);
  switchyard::sim::AddPartCommands(app, line);
  switchyard::sim::AddDemoCommand(app, line);
  app.footer(
      "Example:\n"
      "  switchyard-sim up --board hgx-h100\n"
      "  switchyard agent --config /tmp/switchyard-sim/agent.yaml &\n"
      "  switchyard-sim pod add vm-a --gpus 2\n"
      "  switchyard-sim down");
  AddExitCodes(app);
  for (CLI::App* command : app.get_subcommands({})) command->fallthrough();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return line.exit_code;
}
