// SPDX-License-Identifier: Apache-2.0
#include "sim/node/picture.h"

#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace switchyard::sim {
namespace {

using Json = nlohmann::json;

constexpr size_t kPerRow = 4;  // a quad of the board
constexpr size_t kCellWidth = 22;
constexpr size_t kCellLines = 4;

std::string Cut(std::string text) {
  if (text.size() > kCellWidth) text = text.substr(0, kCellWidth - 2) + "..";
  return text;
}

std::array<std::string, kCellLines> Cell(const Json& gpu) {
  std::string driver = "VANISHED";
  if (gpu["present"]) {
    driver = gpu["driver"].is_null() ? "no driver" : gpu["driver"].get<std::string>();
    absl::StrAppend(&driver, " group ", gpu["iommuGroup"].get<int>());
  }
  const int numa = gpu["numaNode"];
  return {absl::StrFormat("%2d  %s", gpu["module"].get<int>(),
                          gpu["broken"] ? "BROKEN"
                          : numa < 0    ? "no NUMA node"
                                        : absl::StrCat("NUMA node ", numa)),
          gpu["address"].get<std::string>(), Cut(driver),
          gpu["pod"].is_null() ? "-" : Cut(gpu["pod"].get<std::string>())};
}

std::string Ids(const Json& modules) {
  return absl::StrCat("{", absl::StrJoin(modules.get<std::vector<int>>(), ","), "}");
}

// "3 {1,3}, 5 {5,7}": the partitions of which `what` is true.
std::string PartitionsThat(const Json& fm, const char* what) {
  std::vector<std::string> partitions;
  for (const Json& partition : fm["partitions"]) {
    if (!partition[what]) continue;
    partitions.push_back(absl::StrCat(partition["id"].get<int>(), " ", Ids(partition["modules"])));
  }
  return partitions.empty() ? "none" : absl::StrJoin(partitions, ", ");
}

std::string KubeletPicture(const Json& kubelet) {
  std::string text = "kubelet:";
  if (kubelet["resources"].empty()) absl::StrAppend(&text, " no plugin has registered");
  absl::StrAppend(&text, "\n");
  for (const auto& [name, resource] : kubelet["resources"].items()) {
    int used = 0;
    for (const Json& device : resource["devices"]) used += device["inUse"] ? 1 : 0;
    absl::StrAppendFormat(&text, "  %s: %d, %d healthy, %d in use%s\n", name,
                          resource["capacity"].get<int>(), resource["allocatable"].get<int>(), used,
                          resource["connected"] ? "" : ", plugin gone");
  }
  for (const Json& pod : kubelet["pods"]) {
    absl::StrAppendFormat(&text, "  pod %s/%s: %s\n", pod["namespace"].get<std::string>(),
                          pod["name"].get<std::string>(),
                          pod["admitted"] ? "admitted" : pod["reason"].get<std::string>());
  }
  return text;
}

}  // namespace

std::string BoardPicture(const Json& status) {
  const Json& gpus = status["gpus"];
  std::string text;
  for (size_t row = 0; row < gpus.size(); row += kPerRow) {
    const size_t end = std::min(row + kPerRow, gpus.size());
    std::string edge = "+";
    std::array<std::string, kCellLines> lines;
    lines.fill("|");
    for (size_t i = row; i < end; ++i) {
      absl::StrAppend(&edge, std::string(kCellWidth + 2, '-'), "+");
      const auto cell = Cell(gpus[i]);
      for (size_t line = 0; line < kCellLines; ++line) {
        absl::StrAppendFormat(&lines[line], " %-*s |", static_cast<int>(kCellWidth), cell[line]);
      }
    }
    absl::StrAppend(&text, edge, "\n", absl::StrJoin(lines, "\n"), "\n");
    if (end == gpus.size()) absl::StrAppend(&text, edge, "\n");
  }
  return text;
}

std::string FabricPicture(const Json& fm) {
  std::string text = absl::StrCat("Fabric Manager: ", fm["running"] ? "up" : "DOWN",
                                  fm["waiting"] ? ", WAITS for the list of active partitions" : "",
                                  ", unix:", fm["unix"].get<std::string>());
  const std::string tcp = fm["tcp"];
  if (!tcp.empty()) absl::StrAppend(&text, ", ", tcp);
  const std::string active = PartitionsThat(fm, "active");
  const std::string routed = PartitionsThat(fm, "routed");
  absl::StrAppend(&text, "\n  active partitions: ", active, "\n");
  // They differ after a warm restart only.
  if (routed != active) absl::StrAppend(&text, "  routed by the switches: ", routed, "\n");
  return text;
}

std::string TablePicture(const Json& fm) {
  std::string text;
  for (const Json& partition : fm["partitions"]) {
    absl::StrAppendFormat(&text, "  %3d  %-8s %s\n", partition["id"].get<int>(),
                          partition["active"] ? "active" : "-", Ids(partition["modules"]));
  }
  return text;
}

std::string StatusPicture(const Json& status) {
  std::string text;
  if (status.contains("board")) {
    absl::StrAppendFormat(
        &text, "%s, seed %d, %d NVSwitches%s\n", status["board"]["name"].get<std::string>(),
        status["board"]["seed"].get<std::uint64_t>(), status["board"]["nvswitches"].get<int>(),
        status.value("iommufd", false) ? ", iommufd" : "");
  }
  if (status.contains("gpus")) absl::StrAppend(&text, BoardPicture(status));
  if (status.contains("fm")) absl::StrAppend(&text, FabricPicture(status["fm"]));
  if (status.contains("kubelet")) absl::StrAppend(&text, KubeletPicture(status["kubelet"]));
  return text;
}

std::string PodPicture(const Json& pod) {
  std::string text = absl::StrCat("pod ", pod["namespace"].get<std::string>(), "/",
                                  pod["name"].get<std::string>(), ": ");
  if (!pod["admitted"]) {
    return absl::StrCat(text, "REJECTED, ", pod["reason"].get<std::string>(), ": ",
                        pod["message"].get<std::string>(), "\n");
  }
  absl::StrAppend(&text, "admitted\n");
  for (const Json& container : pod["containers"]) {
    if (container.contains("waiting")) {
      absl::StrAppend(&text, "  container ", container["name"].get<std::string>(),
                      " WAITS: ", container["waiting"].get<std::string>(), "\n");
    }
    for (const auto& [resource, ids] : container["devices"].items()) {
      absl::StrAppend(&text, "  ", resource, ": ",
                      absl::StrJoin(ids.get<std::vector<std::string>>(), ", "), "\n");
    }
    if (container.contains("modules")) {
      absl::StrAppend(&text, "  ", container["modules"].get<std::string>(), "\n");
    }
    for (const auto& [name, value] : container["env"].items()) {
      absl::StrAppend(&text, "  env ", name, "=", value.get<std::string>(), "\n");
    }
    for (const Json& node : container["nodes"]) {
      absl::StrAppend(&text, "  node ", node["hostPath"].get<std::string>(), " ",
                      node["permissions"].get<std::string>(), "\n");
    }
    for (const Json& name : container["cdiDevices"]) {
      absl::StrAppend(&text, "  CDI ", name.get<std::string>(), "\n");
    }
  }
  return text;
}

}  // namespace switchyard::sim
