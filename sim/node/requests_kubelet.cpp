// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "sim/node/gpu_resources.h"
#include "sim/node/requests.h"

namespace switchyard::sim {
namespace {

using Json = nlohmann::json;

Json Done(std::string what) { return {{"done", std::move(what)}}; }

const char* StateName(ContainerState state) {
  switch (state) {
    case ContainerState::kWaiting:
      return "waiting";
    case ContainerState::kRunning:
      return "running";
    case ContainerState::kExited:
      return "exited";
  }
  return "waiting";
}

Json ContainerJson(const SimNode& node, const ContainerResult& container) {
  Json json = {{"name", container.name},
               {"state", StateName(container.state)},
               {"starts", container.starts},
               {"devices", container.devices},
               {"env", container.envs},
               {"annotations", container.annotations},
               {"cdiDevices", container.cdi_devices},
               {"nodes", Json::array()},
               {"mounts", Json::array()}};
  if (!container.waiting.empty()) json["waiting"] = container.waiting;
  for (const DeviceNode& device : container.nodes) {
    json["nodes"].push_back({{"hostPath", device.host_path},
                             {"containerPath", device.container_path},
                             {"permissions", device.permissions}});
  }
  for (const ContainerMount& mount : container.mounts) {
    json["mounts"].push_back({{"hostPath", mount.host_path},
                              {"containerPath", mount.container_path},
                              {"readOnly", mount.read_only}});
  }
  std::vector<int> modules;
  for (const auto& [resource, ids] : container.devices) {
    for (const std::string& id : ids) {
      if (const auto module = ModuleOfId(node, id)) modules.push_back(*module);
    }
  }
  if (!modules.empty()) json["modules"] = DescribeModules(node, modules);
  return json;
}

Json PodJson(const SimNode& node, const std::string& ns, const std::string& name,
             const PodStatus& status) {
  Json json = {{"namespace", ns}, {"name", name}, {"admitted", status.admitted}};
  if (!status.admitted) {
    json["reason"] = status.reason;
    json["message"] = status.message;
  }
  json["containers"] = Json::array();
  for (const ContainerResult& container : status.containers) {
    json["containers"].push_back(ContainerJson(node, container));
  }
  return json;
}

Result<std::string> NamespaceArgument(const Json& request) {
  if (!request.contains("namespace")) return std::string("default");
  return TextArgument(request, "namespace");
}

// "waitMs": how long a plugin has to register, before a pod comes.
Status WaitForPlugin(SimNode& node, const Json& request) {
  std::int64_t wait_ms = 0;
  if (request.contains("waitMs")) {
    ASSIGN_OR_RETURN(wait_ms, IntArgument(request, "waitMs", 0, 600'000));
  }
  (void)node.kubelet().WaitFor(
      [&node] { return OnlyGpuResource(node).status().code() != absl::StatusCode::kNotFound; },
      absl::Milliseconds(wait_ms));
  return OkStatus();
}

// The resource named, or the only one there is.
Result<std::string> ResourceArgument(SimNode& node, const Json& request) {
  if (request.contains("resource")) return TextArgument(request, "resource");
  RETURN_IF_ERROR(WaitForPlugin(node, request));
  return OnlyGpuResource(node);
}

Result<Json> AddPod(SimNode& node, const Json& request) {
  PodSpec pod;
  ASSIGN_OR_RETURN(pod.name, TextArgument(request, "name"));
  ASSIGN_OR_RETURN(pod.ns, NamespaceArgument(request));
  ASSIGN_OR_RETURN(const std::int64_t gpus, IntArgument(request, "gpus", 1, 64));
  ASSIGN_OR_RETURN(const std::string resource, ResourceArgument(node, request));
  if (request.contains("numa")) {
    ASSIGN_OR_RETURN(const std::int64_t numa, IntArgument(request, "numa", 0, 1023));
    pod.numa_affinity = {static_cast<int>(numa)};
  }
  pod.containers.push_back({.name = "compute", .resources = {{resource, static_cast<int>(gpus)}}});
  return PodJson(node, pod.ns, pod.name, node.kubelet().AddPod(pod));
}

Result<Json> RemovePod(SimNode& node, const Json& request) {
  ASSIGN_OR_RETURN(const std::string name, TextArgument(request, "name"));
  ASSIGN_OR_RETURN(const std::string ns, NamespaceArgument(request));
  if (!node.kubelet().RemovePod(ns, name)) {
    return absl::NotFoundError(absl::StrCat("there is no pod ", ns, "/", name));
  }
  return Done(absl::StrCat("pod ", ns, "/", name, " has ended"));
}

Result<Json> ReadmitPod(SimNode& node, const Json& request) {
  ASSIGN_OR_RETURN(const std::string name, TextArgument(request, "name"));
  ASSIGN_OR_RETURN(const std::string ns, NamespaceArgument(request));
  RETURN_IF_ERROR(WaitForPlugin(node, request));
  ASSIGN_OR_RETURN(const PodStatus status, node.kubelet().ReadmitPod(ns, name));
  return PodJson(node, ns, name, status);
}

Result<Json> RestartPod(SimNode& node, const Json& request) {
  ASSIGN_OR_RETURN(const std::string name, TextArgument(request, "name"));
  ASSIGN_OR_RETURN(const std::string ns, NamespaceArgument(request));
  ASSIGN_OR_RETURN(const PodStatus status, node.kubelet().RestartContainers(ns, name));
  return PodJson(node, ns, name, status);
}

Result<Json> ListPods(SimNode& node, const Json&) {
  Json pods = Json::array();
  for (const PodReport& pod : node.kubelet().Pods()) {
    pods.push_back(PodJson(node, pod.ns, pod.name, pod.status));
  }
  return pods;
}

Result<Json> Start(SimNode& node, const Json&) {
  RETURN_IF_ERROR(node.kubelet().Start());
  return Done("kubelet has started");
}

Result<Json> Stop(SimNode& node, const Json&) {
  node.kubelet().Stop();
  return Done("kubelet has stopped");
}

Result<Json> Restart(SimNode& node, const Json&) {
  RETURN_IF_ERROR(node.kubelet().Restart());
  return Done("kubelet was restarted: it removed every socket in its device-plugins folder");
}

Result<Json> LoseCheckpoint(SimNode& node, const Json&) {
  node.kubelet().Stop();
  RETURN_IF_ERROR(node.kubelet().LoseCheckpoint());
  RETURN_IF_ERROR(node.kubelet().Start());
  return Done(
      "kubelet was restarted without its checkpoint: it knows of no device that a container has");
}

Result<Json> FailRegister(SimNode& node, const Json& request) {
  ASSIGN_OR_RETURN(const std::int64_t count, IntArgument(request, "count", 0, 1000));
  node.kubelet().FailRegisters(static_cast<int>(count));
  return Done(absl::StrCat("kubelet refuses the next ", count, " Register calls"));
}

Result<Json> WithholdStreams(SimNode& node, const Json& request) {
  ASSIGN_OR_RETURN(const std::int64_t count, IntArgument(request, "count", 0, 1000));
  node.kubelet().WithholdStreams(static_cast<int>(count));
  return Done(absl::StrCat("kubelet opens no ListAndWatch after the next ", count, " Registers"));
}

RequestHandler HoldDialBack(bool hold) {
  return [hold](SimNode& node, const Json&) -> Result<Json> {
    node.kubelet().HoldDialBack(hold);
    return Done(hold ? "Register waits before kubelet dials back" : "kubelet dials back again");
  };
}

}  // namespace

void AddKubeletRequests(RequestTable& table) {
  table["pod.add"] = AddPod;
  table["pod.remove"] = RemovePod;
  table["pod.readmit"] = ReadmitPod;
  table["pod.restart"] = RestartPod;
  table["pod.list"] = ListPods;
  table["kubelet.start"] = Start;
  table["kubelet.stop"] = Stop;
  table["kubelet.restart"] = Restart;
  table["kubelet.lose-checkpoint"] = LoseCheckpoint;
  table["kubelet.fail-register"] = FailRegister;
  table["kubelet.withhold-streams"] = WithholdStreams;
  table["kubelet.hold-dial-back"] = HoldDialBack(true);
  table["kubelet.dial-back"] = HoldDialBack(false);
}

}  // namespace switchyard::sim
