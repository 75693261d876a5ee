// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the simulated kubelet is asked for (pods) and what it says (their status, its resources).
// Plain values; any thread.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace switchyard::sim {

struct ContainerSpec {
  std::string name = {};
  bool init = false;         // runs before the others; they may take over its devices
  bool restartable = false;  // of an init container: a sidecar, which keeps its devices
  std::map<std::string, int> resources = {};  // extended resource name -> how many
};

struct PodSpec {
  std::string ns = "default";
  std::string name = {};
  std::vector<ContainerSpec> containers = {};  // admitted in this order, init containers first
  // What the topology manager decided: the NUMA nodes to align to. Absent: no hint.
  std::optional<std::set<int>> numa_affinity = {};
};

struct DeviceNode {
  std::string container_path = {};
  std::string host_path = {};
  std::string permissions = {};  // any of r, w, m
  friend bool operator==(const DeviceNode&, const DeviceNode&) = default;
};

struct ContainerMount {
  std::string container_path = {};
  std::string host_path = {};
  bool read_only = false;
  friend bool operator==(const ContainerMount&, const ContainerMount&) = default;
};

enum class ContainerState {
  kWaiting,  // to be started
  kRunning,
  kExited,  // an init container that has done its work, which here it does at once
};

// What kubelet would hand to the container runtime: the answers of all resources of a container,
// merged. On a conflicting key the first answer wins.
struct ContainerResult {
  std::string name = {};
  ContainerState state = ContainerState::kWaiting;
  int starts = 0;            // that succeeded
  std::string waiting = {};  // why it could not be started: kubelet's message. Tried again
  std::map<std::string, std::vector<std::string>> devices = {};  // resource -> ids, sorted
  std::map<std::string, std::string> envs = {};
  std::map<std::string, std::string> annotations = {};
  std::vector<DeviceNode> nodes = {};
  std::vector<ContainerMount> mounts = {};
  std::vector<std::string> cdi_devices = {};
};

struct PodStatus {
  bool admitted = false;
  // Empty if admitted; "Pending" while its admission runs. Of a pod that is Failed for ever:
  // "UnexpectedAdmissionError" with kubelet's message, or "OutOf<resource>" for a resource nobody
  // registered, where a scheduler would have left the pod Pending. Of a pod that is not remembered:
  // "Invalid", "AlreadyExists", or "KubeletStopped" (add it again, as the API server would).
  std::string reason = {};
  std::string message = {};
  std::vector<ContainerResult> containers = {};  // empty if not admitted
};

struct PodReport {
  std::string ns = {};
  std::string name = {};
  PodStatus status = {};
};

struct DeviceReport {
  std::string id = {};
  bool healthy = false;
  std::vector<int> numa_nodes = {};  // as the plugin sent them
  bool in_use = false;               // in kubelet's own record of what is allocated
};

struct ResourceReport {
  int capacity = 0;        // healthy and unhealthy
  int allocatable = 0;     // healthy
  bool connected = false;  // a plugin is registered and its stream has not ended
  // By id; one that was sent with both healths is here twice.
  std::vector<DeviceReport> devices = {};
};

}  // namespace switchyard::sim
