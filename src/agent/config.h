// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the operator decided: every key of the configuration as a plain value, with its default. The
// keys' names, grammar and documentation are in agent/config_keys.cpp, reading is in
// agent/config_load.h. Immutable after the start; any thread.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/event.h"
#include "base/log.h"
#include "fabric/fabric_reader.h"
#include "fabric/planner.h"
#include "tenancy/tenancies.h"

namespace switchyard::agent {

// Whose contract the device plugin speaks; one a node.
enum class Consumer { kKubevirt, kKata };

// What a restart of Fabric Manager means on this node.
enum class FabricRestart { kAuto, kWarm, kCold };

struct FabricConfig {
  tenancy::FabricMode mode = tenancy::FabricMode::kOff;
  fabric::FabricAddress address{"127.0.0.1:6666", false};
  std::string library;  // absolute path of libnvfm.so.1; empty = the loader's search
  fabric::Policy policy = fabric::Policy::kPack;
  absl::Duration timeout = absl::Seconds(15);  // one operation, all of it
  absl::Duration probe_interval = absl::Seconds(15);
  FabricRestart restart = FabricRestart::kAuto;
  std::vector<std::string> module_map = {"/run/nvidia-fabricmanager/gpu-pci-module-mapping.json",
                                         "/var/lib/switchyard/module-map.json"};
};

struct ResourcesConfig {
  std::map<std::uint16_t, std::string> names;  // PCI device id -> name after nvidia.com/
  // One name for every device of the kind; empty = a name for each model.
  std::string gpu_alias;
  std::string nvswitch_alias;
};

struct PathsConfig {
  std::string host_root = "/";
  std::string device_plugins = "/var/lib/kubelet/device-plugins";
  std::string kubelet_root = "/var/lib/kubelet";
  std::string state = "/var/lib/switchyard";
  std::string cdi = "/var/run/cdi";
  std::string socket = "/run/switchyard/agent.sock";
  std::string pci_ids = "/usr/share/misc/pci.ids";
  std::string nvml;  // absolute path of libnvidia-ml.so.1; empty = the loader's search
  std::string service_account = "/var/run/secrets/kubernetes.io/serviceaccount";
};

struct HttpAddress {
  std::string host = "127.0.0.1";  // IPv4 or IPv6 address, without brackets
  std::uint16_t port = 9417;       // 0 = any free one

  [[nodiscard]] std::string ToString() const;  // "127.0.0.1:9417", "[::1]:9417"
  [[nodiscard]] bool IsLoopback() const;
};

struct LogConfig {
  LogFormat format = LogFormat::kText;
  Severity level = Severity::kInfo;
};

struct Config {
  Consumer consumer = Consumer::kKubevirt;
  FabricConfig fabric;
  absl::Duration allocate_wait = absl::Seconds(5);
  absl::Duration tenancy_grace = absl::Seconds(60);
  std::string node_name;  // this node's name in Kubernetes; empty = nobody said
  ResourcesConfig resources;
  PathsConfig paths;
  HttpAddress http_address;
  LogConfig log;
};

// The lock that makes an agent the only one of its node (base/file_lock.h).
[[nodiscard]] std::string OwnerLockPath(const Config& config);

}  // namespace switchyard::agent
