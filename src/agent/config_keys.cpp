// SPDX-License-Identifier: Apache-2.0
#include "agent/config_keys.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "agent/config_key_types.h"
#include "agent/config_values.h"

// The member of Config that a row is.
#define FIELD(member) [](Config& c) -> decltype(c.member)& { return c.member; }

namespace switchyard::agent {
namespace {

using fabric::Policy;
using tenancy::FabricMode;

std::vector<Key> FabricKeys() {
  return {
      EnumKey<FabricMode>("fabric.mode", FIELD(fabric.mode),
                          {{"off", FabricMode::kOff},
                           {"advise", FabricMode::kAdvise},
                           {"enforce", FabricMode::kEnforce}},
                          "off: no Fabric Manager; advise: prefer partitions, never activate or "
                          "deactivate one; enforce: activate them, and refuse what is none"),
      FabricAddressKey("fabric.address", FIELD(fabric.address), "where Fabric Manager listens"),
      PathKey("fabric.library", FIELD(fabric.library), MayBeEmpty::kYes,
              "libnvfm.so.1; empty: the loader's search"),
      EnumKey<Policy>("fabric.policy", FIELD(fabric.policy),
                      {{"pack", Policy::kPack}, {"lowest-id", Policy::kLowestId}},
                      "how partitions are ranked; pack keeps large ones whole"),
      DurationKey("fabric.timeout", FIELD(fabric.timeout), absl::Milliseconds(10), absl::Minutes(5),
                  "one Fabric Manager operation, connect included"),
      DurationKey("fabric.probeInterval", FIELD(fabric.probe_interval), absl::Milliseconds(10),
                  absl::Hours(1), "how often Fabric Manager's list is read"),
      EnumKey<FabricRestart>("fabric.restart", FIELD(fabric.restart),
                             {{"auto", FabricRestart::kAuto},
                              {"warm", FabricRestart::kWarm},
                              {"cold", FabricRestart::kCold}},
                             "what a Fabric Manager restart means on this node"),
      PathsKey("fabric.moduleMap", FIELD(fabric.module_map),
               "files that say which GPU has which module id; absent ones are skipped"),
  };
}

std::vector<Key> ResourceKeys() {
  return {
      DeviceNamesKey("resources.names", FIELD(resources.names),
                     "PCI device id to the name after nvidia.com/, before pci.ids is asked"),
      AliasKey("resources.aliases.gpu", FIELD(resources.gpu_alias),
               "one name for all GPUs (kata: pgpu); empty: one a model"),
      AliasKey("resources.aliases.nvswitch", FIELD(resources.nvswitch_alias),
               "one name for all NVSwitches (kata: nvswitch); empty: one a model"),
  };
}

std::vector<Key> PathKeys() {
  return {
      PathKey("paths.hostRoot", FIELD(paths.host_root), MayBeEmpty::kNo,
              "prefix of the host's sys/, dev/ and proc/, and of nothing else"),
      PathKey("paths.devicePlugins", FIELD(paths.device_plugins), MayBeEmpty::kNo,
              "kubelet's folder of device plugin sockets"),
      PathKey("paths.kubeletRoot", FIELD(paths.kubelet_root), MayBeEmpty::kNo,
              "kubelet's root, for its PodResources socket"),
      PathKey("paths.state", FIELD(paths.state), MayBeEmpty::kNo, "folder of the state file"),
      PathKey("paths.cdi", FIELD(paths.cdi), MayBeEmpty::kNo, "folder of CDI files"),
      SocketKey("paths.socket", FIELD(paths.socket), "the operator socket"),
      PathKey("paths.pciIds", FIELD(paths.pci_ids), MayBeEmpty::kNo, "names of PCI devices"),
      PathKey("paths.nvml", FIELD(paths.nvml), MayBeEmpty::kYes,
              "libnvidia-ml.so.1; empty: the loader's search"),
      PathKey("paths.serviceAccount", FIELD(paths.service_account), MayBeEmpty::kNo,
              "folder of the pod's token and CA for the API server; it may be absent"),
  };
}

std::vector<Key> MakeKeys() {
  std::vector<Key> keys = {EnumKey<Consumer>(
      "consumer", FIELD(consumer), {{"kubevirt", Consumer::kKubevirt}, {"kata", Consumer::kKata}},
      "whose contract the device plugin speaks; one a node")};
  const auto append = [&keys](std::vector<Key> more) {
    for (Key& key : more) keys.push_back(std::move(key));
  };
  append(FabricKeys());
  append({DurationKey("allocate.wait", FIELD(allocate_wait), absl::ZeroDuration(), absl::Minutes(1),
                      "how long an admission waits for a holder that is just exiting"),
          DurationKey("tenancy.grace", FIELD(tenancy_grace), absl::ZeroDuration(), absl::Hours(24),
                      "how long two views must agree before a release"),
          NodeNameKey("kubernetes.nodeName", FIELD(node_name),
                      "this node's name in Kubernetes, whose events it writes; empty: none")});
  append(ResourceKeys());
  append(PathKeys());
  append({HttpAddressKey("http.address", FIELD(http_address), "metrics and probes"),
          EnumKey<LogFormat>("log.format", FIELD(log.format),
                             {{"text", LogFormat::kText}, {"json", LogFormat::kJson}},
                             "key=value text, or one JSON object a line"),
          EnumKey<Severity>("log.level", FIELD(log.level),
                            {{"debug", Severity::kDebug},
                             {"info", Severity::kInfo},
                             {"warning", Severity::kWarning},
                             {"error", Severity::kError}},
                            "the least severe line that is written")});
  return keys;
}

// "fabric.probeInterval" -> "fabric-probe-interval".
std::string Words(absl::string_view name) {
  std::string words;
  for (const char c : name) {
    if (absl::ascii_isupper(static_cast<unsigned char>(c))) words.push_back('-');
    words.push_back(c == '.' ? '-' : absl::ascii_tolower(static_cast<unsigned char>(c)));
  }
  return words;
}

}  // namespace

const std::vector<Key>& Keys() {
  static const auto* keys = new std::vector<Key>(MakeKeys());
  return *keys;
}

const Key* FindKey(absl::string_view name) {
  for (const Key& key : Keys()) {
    if (key.name == name) return &key;
  }
  return nullptr;
}

std::string FlagName(const Key& key) { return absl::StrCat("--", Words(key.name)); }

std::string EnvironmentName(const Key& key) {
  return absl::StrCat("SWITCHYARD_",
                      absl::AsciiStrToUpper(absl::StrReplaceAll(Words(key.name), {{"-", "_"}})));
}

Result<Value> SplitText(const Key& key, absl::string_view text) {
  Value value;
  if (key.kind == KeyKind::kText) {
    value.text = std::string(text);
    return value;
  }
  if (text.empty()) return value;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    if (key.kind == KeyKind::kList) {
      value.list.emplace_back(part);
      continue;
    }
    const std::pair<absl::string_view, absl::string_view> entry =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    if (!absl::StrContains(part, "=")) {
      return absl::InvalidArgumentError(
          absl::StrCat(Quote(part), " has no =: write KEY=VALUE,KEY=VALUE"));
    }
    value.map.emplace_back(entry.first, entry.second);
  }
  return value;
}

std::string JoinValue(const Key& key, const Value& value) {
  switch (key.kind) {
    case KeyKind::kText:
      return value.text;
    case KeyKind::kList:
      return absl::StrJoin(value.list, ",");
    case KeyKind::kMap:
      return absl::StrJoin(value.map, ",", absl::PairFormatter("="));
  }
  return "";
}

absl::string_view ConsumerName(Consumer consumer) {
  return consumer == Consumer::kKubevirt ? "kubevirt" : "kata";
}

}  // namespace switchyard::agent
