// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "sim/node/cli.h"

namespace switchyard::sim {
namespace {

using Json = nlohmann::json;

void AddCode(CLI::App& fm, CommandLine& line) {
  auto number = std::make_shared<std::int64_t>(0);
  auto call = std::make_shared<std::string>("list");
  auto* code = fm.add_subcommand("code", "A call returns that code, and does nothing");
  code->fallthrough()->add_option("N", *number, "The minus may be left out")->required();
  code->add_option("CALL", *call, "connect, list, activate, deactivate or set-activated")
      ->capture_default_str();
  code->footer(
      "Examples:\n"
      "  switchyard-sim fault fm code 8\n"
      "  switchyard-sim fault fm code 10 activate");
  code->callback([number, call, &line] {
    line.Ask({{"command", "fm.code"}, {"code", -std::abs(*number)}, {"call", *call}});
  });
}

void AddRestart(CLI::App& fm, CommandLine& line) {
  auto warm = std::make_shared<bool>(false);
  auto cold = std::make_shared<bool>(false);
  auto number = std::make_shared<std::int64_t>(0);
  auto* restart =
      fm.add_subcommand("restart", "Fabric Manager ends and starts anew, also from down");
  auto* kind = restart->fallthrough()->add_option_group("Kind", "One of");
  kind->add_flag("--warm", *warm,
                 "Guests keep their NVLink; it waits 60 s for the list of active partitions, and "
                 "exits if that does not come");
  kind->add_flag("--cold", *cold, "No partition is active");
  kind->require_option(1);
  auto* code =
      restart->add_option("--code", *number, "With --warm: what calls return meanwhile; default 8");
  restart->footer(
      "`clock advance` shortens the wait. Examples:\n"
      "  switchyard-sim fault fm restart --warm\n"
      "  switchyard-sim fault fm restart --warm --code 22\n"
      "  switchyard-sim fault fm restart --cold");
  restart->callback([warm, cold, number, code, &line] {
    Json request = {{"command", "fm.restart"}, {"kind", *warm && !*cold ? "warm" : "cold"}};
    if (code->count() > 0) request["code"] = -std::abs(*number);
    line.Ask(request);
  });
}

}  // namespace

void AddFabricManagerCalls(CLI::App& fm, CommandLine& line) {
  AddCode(fm, line);
  AddRestart(fm, line);
}

}  // namespace switchyard::sim
