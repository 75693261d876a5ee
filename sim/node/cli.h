// SPDX-License-Identifier: Apache-2.0
#pragma once

// switchyard-sim's command line: one function for each group of subcommands (CLI11 is slow to
// compile, so a group a file). Exit codes: 0 ok, 1 failed, 2 wrong usage. One thread.

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/status.h"
#include "sim/node/paths.h"

namespace CLI {
class App;
}

namespace switchyard::sim {

struct CommandLine {
  std::string dir;  // --dir, as given
  int exit_code = 0;

  // --dir as an absolute path.
  [[nodiscard]] NodePaths paths() const;
  // Prints the error, if it is one, and sets the exit code.
  void Finish(const Status& status);
  // Asks the running simulator and prints its answer by `print`, or "done" if null.
  using Print = std::function<std::string(const nlohmann::json&)>;
  void Ask(const nlohmann::json& request, const Print& print = nullptr);
};

void AddNodeCommands(CLI::App& app, CommandLine& line);       // up, down, status, exec
void AddFaultCommands(CLI::App& app, CommandLine& line);      // fault, clock
void AddFabricManagerCalls(CLI::App& fm, CommandLine& line);  // fault fm code, restart
void AddPodCommands(CLI::App& app, CommandLine& line);        // pod, fabric
void AddPartCommands(CLI::App& app, CommandLine& line);       // fm, kubelet, hardware, sysfs

}  // namespace switchyard::sim
