// SPDX-License-Identifier: Apache-2.0
#pragma once

// The pods kubelet knows, by namespace and name. Any thread.

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "sim/kubelet/pod.h"
#include "sim/kubelet/pod_devices.h"

namespace switchyard::sim {

struct PodRecord {
  PodUid uid = 0;
  PodSpec spec;
  PodStatus status;
  bool active = true;     // false: Failed
  bool rebooted = false;  // the node has restarted since: its containers wait for an admission
};

class PodTable {
 public:
  using Name = std::pair<std::string, std::string>;  // namespace, name

  // A new pod whose admission begins, status "Pending"; it replaces a Failed one of its name.
  // nullopt if there is an active one.
  std::optional<PodRecord> Begin(const PodSpec& spec);
  // The end of an admission; not active means Failed.
  void Finish(const Name& name, const PodStatus& status);
  // What became of its containers' starts. Of another pod of the name, or one whose node has
  // restarted meanwhile, nothing is changed.
  void SetContainers(const Name& name, PodUid uid, std::vector<ContainerResult> containers);
  // The node restarts: no container runs any more.
  void Reboot();
  // Uids given from now on are greater than `uid`.
  void SkipUids(PodUid uid);
  // Waits for the end of its admission; what it was, or nullopt if there is none.
  std::optional<PodRecord> Remove(const Name& name);
  // As Remove, but of a pod under admission and without waiting.
  void Forget(const Name& name);

  [[nodiscard]] std::optional<PodRecord> Find(const Name& name) const;
  [[nodiscard]] std::vector<PodRecord> All() const;

 private:
  mutable absl::Mutex mutex_;
  PodUid last_uid_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<Name, PodRecord> pods_ ABSL_GUARDED_BY(mutex_);
};

// What an API server would refuse; the message names the field.
[[nodiscard]] std::optional<std::string> FindProblem(const PodSpec& spec);

}  // namespace switchyard::sim
