// SPDX-License-Identifier: Apache-2.0
#include "sim/node/cli.h"

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "sim/node/control_socket.h"

namespace switchyard::sim {

NodePaths CommandLine::paths() const {
  std::string absolute = std::filesystem::absolute(dir).lexically_normal().string();
  while (absolute.size() > 1 && absolute.back() == '/') absolute.pop_back();
  return NodePaths(absolute);
}

void CommandLine::Finish(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "switchyard-sim: %s\n", std::string(status.message()).c_str());
  exit_code = 1;
}

void CommandLine::Ask(const nlohmann::json& request, const Print& print) {
  const Result<nlohmann::json> answer = AskSimulator(paths().control_socket(), request);
  if (!answer.ok()) return Finish(answer.status());
  const std::string text = print ? print(*answer) : answer->at("done").get<std::string>() + "\n";
  std::fputs(text.c_str(), stdout);
}

}  // namespace switchyard::sim
