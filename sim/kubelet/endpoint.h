// SPDX-License-Identifier: Apache-2.0
#pragma once

// A device plugin as the device manager calls it: gRPC in the simulator, a fake in its tests. Calls
// block as long as the plugin does: kubelet sets no deadline, but for PreStartContainer's. They
// come from one thread at a time, but for PreStartContainer.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "sim/kubelet/pod.h"

namespace switchyard::sim {

// One device of a ListAndWatch message.
struct PluginDevice {
  std::string id = {};
  std::string health = {};           // anything but "Healthy" counts as unhealthy
  std::vector<int> numa_nodes = {};  // empty: no topology
};

// What GetDevicePluginOptions says.
struct PluginOptions {
  bool preferred_available = false;
  bool pre_start_required = false;
};

struct PreferredRequest {
  std::vector<std::string> available = {};
  std::vector<std::string> must_include = {};
  int size = 0;
};

// The first container response of an Allocate.
struct AllocateAnswer {
  std::map<std::string, std::string> envs = {};
  std::map<std::string, std::string> annotations = {};
  std::vector<DeviceNode> nodes = {};
  std::vector<ContainerMount> mounts = {};
  std::vector<std::string> cdi_devices = {};
};

class PluginEndpoint {
 public:
  virtual ~PluginEndpoint() = default;

  // The ids of the first container response; empty without one. The error's message is gRPC's as
  // kubelet prints it: "rpc error: code = Internal desc = ...".
  virtual Result<std::vector<std::string>> GetPreferredAllocation(
      const PreferredRequest& request) = 0;
  // nullopt: the response held no container response.
  virtual Result<std::optional<AllocateAnswer>> Allocate(const std::vector<std::string>& ids) = 0;
  // Any thread.
  virtual Status PreStartContainer(const std::vector<std::string>& ids) = 0;
};

}  // namespace switchyard::sim
