// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where everything of one simulated node is, below its folder. A plain value; any thread.

#include <string>
#include <utility>

namespace switchyard::sim {

struct NodePaths {
  NodePaths() = default;
  explicit NodePaths(std::string folder) : dir(std::move(folder)) {}

  std::string dir;

  [[nodiscard]] std::string host_root() const { return dir + "/root"; }  // sys, dev, proc
  [[nodiscard]] std::string kubelet() const { return dir + "/kubelet"; }
  [[nodiscard]] std::string device_plugins() const { return dir + "/kubelet/device-plugins"; }
  [[nodiscard]] std::string pod_resources() const { return dir + "/kubelet/pod-resources"; }
  // /run/nvidia-fabricmanager of the node.
  [[nodiscard]] std::string fm() const { return dir + "/fm"; }
  [[nodiscard]] std::string fm_socket() const { return dir + "/fm/socket"; }
  [[nodiscard]] std::string fm_internal_socket() const { return dir + "/fm/internal.sock"; }
  [[nodiscard]] std::string module_map() const { return dir + "/fm/gpu-pci-module-mapping.json"; }
  [[nodiscard]] std::string lib() const { return dir + "/lib"; }
  [[nodiscard]] std::string nvfm() const { return dir + "/lib/libnvfm.so.1"; }
  [[nodiscard]] std::string nvml() const { return dir + "/lib/libnvidia-ml.so.1"; }
  [[nodiscard]] std::string nvml_json() const { return dir + "/nvml.json"; }
  [[nodiscard]] std::string cdi() const { return dir + "/cdi"; }
  [[nodiscard]] std::string state() const { return dir + "/state"; }  // the agent's
  [[nodiscard]] std::string run() const { return dir + "/run"; }      // /run/switchyard
  [[nodiscard]] std::string agent_yaml() const { return dir + "/agent.yaml"; }
  [[nodiscard]] std::string agent_socket() const { return dir + "/agent.sock"; }
  [[nodiscard]] std::string control_socket() const { return dir + "/sim.sock"; }
  [[nodiscard]] std::string record() const { return dir + "/sim.json"; }
  [[nodiscard]] std::string pid() const { return dir + "/pid"; }  // held locked by the simulator
  [[nodiscard]] std::string log() const { return dir + "/log"; }
};

}  // namespace switchyard::sim
