// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "apps/command.h"
#include "apps/output.h"

namespace switchyard::apps {
namespace {

int Run(const Arguments& arguments) {
  if (arguments.json) {
    PrintJson({{"version", SWITCHYARD_VERSION}});
  } else {
    Print(SWITCHYARD_VERSION);
  }
  return kExitOk;
}

}  // namespace

Command VersionCommand() {
  Command command;
  command.name = "version";
  command.summary = "Say which version this is";
  command.details = "Example:\n  switchyard version -o json";
  command.run = Run;
  return command;
}

}  // namespace switchyard::apps
