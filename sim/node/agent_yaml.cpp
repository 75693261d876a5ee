// SPDX-License-Identifier: Apache-2.0
#include "sim/node/agent_yaml.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace switchyard::sim {
namespace {

// A YAML text in double quotes.
std::string Quoted(const std::string& text) {
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}}), "\"");
}

}  // namespace

std::string AgentYaml(const NodePaths& paths, const YamlOverrides& overrides) {
  YamlOverrides values = {
      {"consumer", "kubevirt"},
      {"fabric.mode", "advise"},
      {"fabric.address", Quoted("unix:" + paths.fm_socket())},
      {"fabric.library", Quoted(paths.nvfm())},
      {"fabric.moduleMap", absl::StrCat("[", Quoted(paths.module_map()), "]")},
      {"http.address", Quoted("127.0.0.1:9417")},
      {"paths.hostRoot", Quoted(paths.host_root())},
      {"paths.devicePlugins", Quoted(paths.device_plugins())},
      {"paths.kubeletRoot", Quoted(paths.kubelet())},
      {"paths.state", Quoted(paths.state())},
      {"paths.cdi", Quoted(paths.cdi())},
      {"paths.socket", Quoted(paths.agent_socket())},
      {"paths.nvml", Quoted(paths.nvml())},
  };
  for (const auto& [key, value] : overrides) values[key] = value;

  std::string yaml = "# Made by switchyard-sim: an agent for this simulated node.\n";
  std::string section;
  for (const auto& [key, value] : values) {  // sorted, so a section stands together
    const size_t dot = key.find('.');
    if (dot == std::string::npos) {
      absl::StrAppend(&yaml, key, ": ", value, "\n");
      continue;
    }
    if (key.substr(0, dot) != section) {
      section = key.substr(0, dot);
      absl::StrAppend(&yaml, section, ":\n");
    }
    absl::StrAppend(&yaml, "  ", key.substr(dot + 1), ": ", value, "\n");
  }
  return yaml;
}

}  // namespace switchyard::sim
