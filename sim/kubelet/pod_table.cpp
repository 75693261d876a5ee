// SPDX-License-Identifier: Apache-2.0
#include "sim/kubelet/pod_table.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"

namespace switchyard::sim {
namespace {

constexpr char kPending[] = "Pending";

}  // namespace

std::optional<PodRecord> PodTable::Begin(const PodSpec& spec) {
  absl::MutexLock lock(&mutex_);
  PodRecord& pod = pods_[{spec.ns, spec.name}];
  if (pod.uid != 0 && pod.active) return std::nullopt;
  pod = {.uid = ++last_uid_, .spec = spec, .status = {}, .active = true, .rebooted = false};
  pod.status.reason = kPending;
  return pod;
}

void PodTable::Finish(const Name& name, const PodStatus& status) {
  absl::MutexLock lock(&mutex_);
  const auto found = pods_.find(name);
  if (found == pods_.end()) return;
  found->second.status = status;
  found->second.active = status.admitted;
  found->second.rebooted = false;
}

void PodTable::SetContainers(const Name& name, PodUid uid,
                             std::vector<ContainerResult> containers) {
  absl::MutexLock lock(&mutex_);
  const auto found = pods_.find(name);
  if (found == pods_.end() || found->second.uid != uid || !found->second.active ||
      found->second.rebooted) {
    return;
  }
  found->second.status.containers = std::move(containers);
}

void PodTable::Reboot() {
  absl::MutexLock lock(&mutex_);
  for (auto& [name, pod] : pods_) {
    if (!pod.active) continue;
    pod.rebooted = true;
    for (ContainerResult& container : pod.status.containers) {
      container.state = ContainerState::kWaiting;
      container.waiting = "the node was restarted";
    }
  }
}

void PodTable::SkipUids(PodUid uid) {
  absl::MutexLock lock(&mutex_);
  last_uid_ = std::max(last_uid_, uid);
}

std::optional<PodRecord> PodTable::Remove(const Name& name) {
  absl::MutexLock lock(&mutex_);
  const auto settled = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const auto pod = pods_.find(name);
    return pod == pods_.end() || pod->second.status.reason != kPending;
  };
  mutex_.Await(absl::Condition(&settled));
  const auto found = pods_.find(name);
  if (found == pods_.end()) return std::nullopt;
  PodRecord removed = std::move(found->second);
  pods_.erase(found);
  return removed;
}

void PodTable::Forget(const Name& name) {
  absl::MutexLock lock(&mutex_);
  pods_.erase(name);
}

std::optional<PodRecord> PodTable::Find(const Name& name) const {
  absl::MutexLock lock(&mutex_);
  const auto found = pods_.find(name);
  return found == pods_.end() ? std::nullopt : std::optional<PodRecord>(found->second);
}

std::vector<PodRecord> PodTable::All() const {
  absl::MutexLock lock(&mutex_);
  std::vector<PodRecord> all;
  all.reserve(pods_.size());
  for (const auto& [name, pod] : pods_) all.push_back(pod);
  return all;
}

std::optional<std::string> FindProblem(const PodSpec& spec) {
  if (spec.name.empty() || spec.ns.empty()) return "a pod needs a name and a namespace";
  std::set<std::string> names;
  for (const ContainerSpec& container : spec.containers) {
    if (container.name.empty()) return "a container needs a name";
    if (!names.insert(container.name).second) {
      return absl::StrCat("two containers are named ", container.name);
    }
    for (const auto& [resource, count] : container.resources) {
      if (count < 0) {
        return absl::StrCat("container ", container.name, " asks for ", count, " ", resource,
                            "; the least is 0");
      }
    }
  }
  return std::nullopt;
}

}  // namespace switchyard::sim
