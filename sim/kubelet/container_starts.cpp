// SPDX-License-Identifier: Apache-2.0
#include "sim/kubelet/container_starts.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"

namespace switchyard::sim {
namespace {

bool Waits(const PodRecord& pod) {
  return pod.active && pod.status.admitted && !pod.rebooted &&
         std::any_of(pod.status.containers.begin(), pod.status.containers.end(),
                     [](const auto& c) { return c.state == ContainerState::kWaiting; });
}

}  // namespace

void ContainerStarts::Start(const PodTable::Name& name) {
  const std::optional<PodRecord> pod = pods_.Find(name);
  if (!pod || !Waits(*pod)) return;
  {
    absl::MutexLock lock(&mutex_);
    if (!starting_.insert(pod->uid).second) return;
  }
  const absl::Cleanup done = [&] {
    absl::MutexLock lock(&mutex_);
    starting_.erase(pod->uid);
  };
  std::vector<ContainerResult> containers = pod->status.containers;
  StartInOrder(*pod, containers);
  pods_.SetContainers(name, pod->uid, std::move(containers));
  changes_.Bump();
}

void ContainerStarts::StartAll() {
  for (const PodRecord& pod : pods_.All()) Start({pod.spec.ns, pod.spec.name});
}

void ContainerStarts::StartInOrder(const PodRecord& pod, std::vector<ContainerResult>& containers) {
  for (const bool init : {true, false}) {
    for (size_t i = 0; i < pod.spec.containers.size() && i < containers.size(); ++i) {
      const ContainerSpec& spec = pod.spec.containers[i];
      ContainerResult& container = containers[i];
      if (spec.init != init || container.state != ContainerState::kWaiting) continue;
      const Status status = StartOne(pod, spec, container);
      container.waiting = std::string(status.message());
      if (!status.ok() && init) return;  // what comes after waits for it
    }
  }
}

Status ContainerStarts::StartOne(const PodRecord& pod, const ContainerSpec& spec,
                                 ContainerResult& container) {
  ASSIGN_OR_RETURN(const bool unknown, manager_.PreStart(pod.uid, spec));
  if (unknown) {
    absl::MutexLock one_at_a_time(&admission_);
    RETURN_IF_ERROR(manager_.Reallocate(pod.uid, pod.spec, spec));
  }
  // What it gets is what was answered once, and kept.
  const int starts = container.starts + 1;
  container = MergeAnswers(spec.name, manager_.Allocations(pod.uid, spec.name));
  container.starts = starts;
  container.state =
      spec.init && !spec.restartable ? ContainerState::kExited : ContainerState::kRunning;
  return OkStatus();
}

}  // namespace switchyard::sim
