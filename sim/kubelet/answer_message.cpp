// SPDX-License-Identifier: Apache-2.0
#include "sim/kubelet/answer_message.h"

#include "k8s_deviceplugin_v1beta1.pb.h"

namespace switchyard::sim {

AllocateAnswer ToAnswer(const v1beta1::ContainerAllocateResponse& message) {
  AllocateAnswer answer;
  answer.envs.insert(message.envs().begin(), message.envs().end());
  answer.annotations.insert(message.annotations().begin(), message.annotations().end());
  for (const v1beta1::DeviceSpec& node : message.devices()) {
    answer.nodes.push_back({node.container_path(), node.host_path(), node.permissions()});
  }
  for (const v1beta1::Mount& mount : message.mounts()) {
    answer.mounts.push_back({mount.container_path(), mount.host_path(), mount.read_only()});
  }
  for (const v1beta1::CDIDevice& device : message.cdi_devices()) {
    answer.cdi_devices.push_back(device.name());
  }
  return answer;
}

void ToMessage(const AllocateAnswer& answer, v1beta1::ContainerAllocateResponse& message) {
  message.mutable_envs()->insert(answer.envs.begin(), answer.envs.end());
  message.mutable_annotations()->insert(answer.annotations.begin(), answer.annotations.end());
  for (const DeviceNode& node : answer.nodes) {
    v1beta1::DeviceSpec& spec = *message.add_devices();
    spec.set_container_path(node.container_path);
    spec.set_host_path(node.host_path);
    spec.set_permissions(node.permissions);
  }
  for (const ContainerMount& mount : answer.mounts) {
    v1beta1::Mount& spec = *message.add_mounts();
    spec.set_container_path(mount.container_path);
    spec.set_host_path(mount.host_path);
    spec.set_read_only(mount.read_only);
  }
  for (const std::string& name : answer.cdi_devices) message.add_cdi_devices()->set_name(name);
}

}  // namespace switchyard::sim
