// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "apps/doctor.h"
#include "apps/operator_client.h"
#include "apps/unix_listener.h"
#include "base/files.h"

namespace switchyard::apps {
namespace {

constexpr size_t kMaxCheckpoint = 16 * 1024 * 1024;

void CheckSocket(absl::string_view check, const std::string& path, absl::string_view what,
                 Findings& findings) {
  switch (ProbeSocket(path)) {
    case Listener::kListens:
      findings.push_back({check, Verdict::kOk, absl::StrCat(what, " listens on ", path), ""});
      return;
    case Listener::kNotAllowed:
      findings.push_back(
          {check, Verdict::kError, absl::StrCat(path, ": permission denied"), "run this as root"});
      return;
    case Listener::kNone:
      findings.push_back({check, Verdict::kError, absl::StrCat("nobody listens on ", path),
                          "start kubelet; in a pod, mount its folder under the same path"});
  }
}

// Sockets of other plugins, with somebody behind them.
void CheckPredecessors(const std::string& folder, Findings& findings) {
  const Result<std::vector<std::string>> names = ListFolder(folder);
  if (!names.ok()) {
    findings.push_back({"kubelet", Verdict::kError, std::string(names.status().message()),
                        "set paths.devicePlugins to kubelet's folder"});
    return;
  }
  bool found = false;
  for (const std::string& name : *names) {
    if (!IsPredecessorSocket(name)) continue;
    if (ProbeSocket(absl::StrCat(folder, "/", name)) != Listener::kListens) continue;
    found = true;
    findings.push_back({"predecessor", Verdict::kError,
                        absl::StrCat("another GPU plugin serves ", folder, "/", name,
                                     ": two plugins would hand out the same GPUs"),
                        "delete the other plugin's DaemonSet, or keep it off this node"});
  }
  if (!found) {
    findings.push_back({"predecessor", Verdict::kOk, "no other GPU plugin listens", ""});
  }
}

// The resource names that kubelet knows, from its own record. It has no published format: what
// can't be read is left out.
std::set<std::string> RegisteredNames(const std::string& folder) {
  const Result<std::string> text =
      ReadFile(absl::StrCat(folder, "/kubelet_internal_checkpoint"), kMaxCheckpoint);
  std::set<std::string> names;
  if (!text.ok()) return names;
  const nlohmann::json record = nlohmann::json::parse(*text, nullptr, false);
  const nlohmann::json::json_pointer where("/Data/RegisteredDevices");
  if (!record.is_object() || !record.contains(where) || !record.at(where).is_object()) return names;
  for (const auto& [name, ids] : record.at(where).items()) {
    if (absl::StartsWith(name, "nvidia.com/") && ids.is_array() && !ids.empty()) names.insert(name);
  }
  return names;
}

std::set<std::string> OurNames(const agent::Config& config) {
  std::set<std::string> names;
  const Result<std::string> answer = OperatorClient{config.paths.socket}.Get("/v1/resources");
  if (!answer.ok()) return names;
  const nlohmann::json document = nlohmann::json::parse(*answer, nullptr, false);
  if (!document.is_object() || !document.contains("resources")) return names;
  for (const nlohmann::json& resource : document["resources"]) {
    if (resource.is_object() && resource.contains("name") && resource["name"].is_string()) {
      names.insert(resource["name"].get<std::string>());
    }
  }
  return names;
}

void CheckNames(const agent::Config& config, Findings& findings) {
  const std::set<std::string> ours = OurNames(config);
  std::vector<std::string> foreign;
  for (const std::string& name : RegisteredNames(config.paths.device_plugins)) {
    if (ours.count(name) == 0) foreign.push_back(name);
  }
  if (foreign.empty()) return;
  findings.push_back(
      {"predecessor", Verdict::kWarning,
       absl::StrCat("kubelet has devices of ", absl::StrJoin(foreign, ", "), " on record, which ",
                    ours.empty() ? "no running agent" : "this agent does not",
                    ours.empty() ? " of ours offers" : " offer"),
       "if another plugin offers the same GPUs, remove it; names of a former one go "
       "away when kubelet restarts"});
}

}  // namespace

bool IsPredecessorSocket(absl::string_view file_name) {
  if (!absl::ConsumeSuffix(&file_name, ".sock")) return false;
  if (absl::StartsWith(file_name, "switchyard")) return false;
  if (absl::ConsumePrefix(&file_name, "kubevirt-")) {
    // A model's name is upper case; KubeVirt's own sockets (kvm, tun, vhost-net ...) are not.
    return std::any_of(file_name.begin(), file_name.end(), absl::ascii_isupper);
  }
  const std::string lower = absl::AsciiStrToLower(file_name);
  return absl::StrContains(lower, "pgpu") || absl::StrContains(lower, "nvswitch") ||
         absl::StrContains(lower, "nvidia");
}

void CheckKubelet(const agent::Config& config, Findings& findings) {
  CheckSocket("kubelet", absl::StrCat(config.paths.device_plugins, "/kubelet.sock"),
              "kubelet's device-plugin API", findings);
  CheckSocket("kubelet", absl::StrCat(config.paths.kubelet_root, "/pod-resources/kubelet.sock"),
              "kubelet's PodResources API", findings);
  CheckPredecessors(config.paths.device_plugins, findings);
  CheckNames(config, findings);
}

}  // namespace switchyard::apps
