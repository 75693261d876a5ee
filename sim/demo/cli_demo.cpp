// SPDX-License-Identifier: Apache-2.0
#include "sim/demo/cli_demo.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "sim/demo/demo.h"

namespace switchyard::sim {

void AddDemoCommand(CLI::App& app, CommandLine& line) {
  auto options = std::make_shared<DemoOptions>();
  auto* demo = app.add_subcommand(
      "demo",
      "The real agent on simulated nodes, scenario by scenario: placement beside a counting "
      "allocator, and enforce with crashes and restarts");
  demo->add_option("--agent", options->agent, "The switchyard binary")->required();
  demo->add_option("--board", options->board, "Name or .json file, with 8 GPUs or more")
      ->capture_default_str();
  demo->add_option("--seed", options->seed, "Of the addresses")->capture_default_str();
  demo->add_option("--only", options->only, "One mode's scenarios")
      ->check(CLI::IsMember({"advise", "enforce"}));
  demo->footer(
      "Exit code 0: nothing was wrong. Examples:\n"
      "  switchyard-sim demo --agent build/release/bin/switchyard\n"
      "  switchyard-sim demo --agent build/release/bin/switchyard --only enforce");
  demo->callback([options, &line] {
    const Result<int> wrong = RunDemo(*options, std::cout);
    line.Finish(wrong.status());
    if (wrong.ok() && *wrong > 0) line.exit_code = 1;
  });
}

}  // namespace switchyard::sim
