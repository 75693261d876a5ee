// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "sim/node/gpu_resources.h"
#include "sim/node/requests.h"

namespace switchyard::sim {
namespace {

using Json = nlohmann::json;

Json GpusJson(const SimNode& node) {
  std::map<PciAddress, FunctionState> functions;
  for (FunctionState& f : node.sysfs().functions()) functions[f.spec.address] = std::move(f);
  const std::map<int, std::string> holders = HoldersOfModules(node);
  Json gpus = Json::array();
  for (const BoardDevice& device : node.board().devices) {
    const FunctionState& f = functions[device.address];
    const auto holder = holders.find(device.module);
    gpus.push_back({{"module", device.module},
                    {"address", device.address.ToString()},
                    {"present", f.present},
                    {"driver", f.spec.driver.empty() ? Json() : Json(f.spec.driver)},
                    {"iommuGroup", f.group},
                    {"vfio", f.vfio.has_value() ? Json(*f.vfio) : Json()},
                    {"numaNode", device.numa_node},
                    {"broken", !f.defects.empty()},
                    {"pod", holder == holders.end() ? Json() : Json(holder->second)}});
  }
  return gpus;
}

Json FabricJson(const SimNode& node) {
  const std::set<int> active = node.fm().active();
  const std::set<int> routed = node.fm().routed();
  Json partitions = Json::array();
  for (const BoardPartition& partition : node.board().partitions) {
    partitions.push_back({{"id", partition.id},
                          {"modules", partition.modules},
                          {"active", active.contains(partition.id)},
                          {"routed", routed.contains(partition.id)}});
  }
  return {{"running", node.fm().running()},
          {"waiting", node.fm().waiting()},
          {"tcp", node.fm().tcp_address()},
          {"unix", node.paths().fm_socket()},
          {"partitions", partitions}};
}

Json KubeletJson(const SimNode& node) {
  Json resources = Json::object();
  for (const auto& [name, resource] : node.kubelet().Resources()) {
    Json devices = Json::array();
    for (const DeviceReport& device : resource.devices) {
      devices.push_back({{"id", device.id},
                         {"healthy", device.healthy},
                         {"inUse", device.in_use},
                         {"numaNodes", device.numa_nodes}});
    }
    resources[name] = {{"capacity", resource.capacity},
                       {"allocatable", resource.allocatable},
                       {"connected", resource.connected},
                       {"devices", devices}};
  }
  Json pods = Json::array();
  for (const PodReport& pod : node.kubelet().Pods()) {
    Json json = {{"namespace", pod.ns}, {"name", pod.name}, {"admitted", pod.status.admitted}};
    if (!pod.status.admitted) json["reason"] = pod.status.reason;
    pods.push_back(json);
  }
  return {{"resources", resources}, {"pods", pods}};
}

Result<Json> Status(SimNode& node, const Json&) {
  Json status = {{"dir", node.paths().dir}, {"pid", getpid()}};
  if (node.has_board()) {
    status["board"] = {{"name", node.board().name},
                       {"seed", node.options().seed},
                       {"nvswitches", node.board().nvswitches.size()}};
  }
  if (node.has_sysfs()) {
    status["gpus"] = GpusJson(node);
    status["iommufd"] = node.options().iommufd;
    status["realNodes"] = node.sysfs().real_nodes();
  }
  if (node.has_fm()) status["fm"] = FabricJson(node);
  if (node.has_kubelet()) status["kubelet"] = KubeletJson(node);
  return status;
}

}  // namespace

void AddStatusRequests(RequestTable& table) { table["status"] = Status; }

}  // namespace switchyard::sim
