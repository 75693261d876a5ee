// SPDX-License-Identifier: Apache-2.0
#pragma once

// Starting the containers of admitted pods, as a kubelet's pod workers do: init containers first,
// one after the other, then the others; before each the device manager is asked. A refusal leaves
// the container waiting (kubelet's CreateContainerConfigError), and the pod is looked at again. Any
// thread; a pod is started by one at a time.

#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "sim/kubelet/changes.h"
#include "sim/kubelet/device_manager.h"
#include "sim/kubelet/pod_table.h"

namespace switchyard::sim {

class ContainerStarts {
 public:
  // `admission` is held by whoever admits. The references must outlive it.
  ContainerStarts(DeviceManager& manager, PodTable& pods, absl::Mutex& admission, Changes& changes)
      : manager_(manager), pods_(pods), admission_(admission), changes_(changes) {}

  // Starts those of the pod's containers that wait. Blocks as long as the plugins do.
  void Start(const PodTable::Name& name);
  // The same for every pod that is admitted, one after the other.
  void StartAll();

 private:
  void StartInOrder(const PodRecord& pod, std::vector<ContainerResult>& containers);
  Status StartOne(const PodRecord& pod, const ContainerSpec& spec, ContainerResult& container);

  DeviceManager& manager_;
  PodTable& pods_;
  absl::Mutex& admission_;
  Changes& changes_;

  absl::Mutex mutex_;
  std::set<PodUid> starting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace switchyard::sim
