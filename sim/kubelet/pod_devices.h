// SPDX-License-Identifier: Apache-2.0
#pragma once

// What was allocated to which container, and the plugin's cached answer: what
// kubelet's checkpoint keeps. A pure value without a lock; the device manager owns it.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/kubelet/endpoint.h"
#include "sim/kubelet/pod.h"

namespace switchyard::sim {

using PodUid = std::uint64_t;
using IdsByResource = std::map<std::string, std::set<std::string>>;

struct AllocatedDevice {
  std::string id;
  std::vector<int> numa_nodes;  // as they were when it was allocated
};

struct Allocation {
  std::string resource;
  std::vector<AllocatedDevice> devices;
  AllocateAnswer answer;
};

class PodDevices {
 public:
  void Insert(PodUid pod, const std::string& container, Allocation allocation);
  void Delete(const std::set<PodUid>& pods);

  // In the order in which they were allocated; empty if there is none.
  [[nodiscard]] std::vector<Allocation> OfContainer(PodUid pod, const std::string& container) const;
  // The ids of one resource; empty if there is none.
  [[nodiscard]] std::set<std::string> Ids(PodUid pod, const std::string& container,
                                          const std::string& resource) const;
  [[nodiscard]] std::set<PodUid> pods() const;
  // pod -> container -> what was allocated
  using Containers = std::map<std::string, std::vector<Allocation>>;
  [[nodiscard]] const std::map<PodUid, Containers>& all() const { return pods_; }
  // Every id, by resource: what "in use" is rebuilt from.
  [[nodiscard]] IdsByResource AllIds() const;

 private:
  std::map<PodUid, Containers> pods_;
};

// The answers of all resources of one container as the container runtime would get them.
[[nodiscard]] ContainerResult MergeAnswers(const std::string& container,
                                           const std::vector<Allocation>& allocations);

}  // namespace switchyard::sim
