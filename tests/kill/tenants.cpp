// SPDX-License-Identifier: Apache-2.0
#include "tests/kill/tenants.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace switchyard::kill {
namespace {

using sim::BoardDevice;
using sim::BoardPartition;

bool Overlap(const std::set<int>& a, const std::set<int>& b) {
  return std::any_of(a.begin(), a.end(), [&](int module) { return b.contains(module); });
}

std::string Text(const std::set<int>& modules) { return absl::StrJoin(modules, ","); }

std::string Text(const Tenant& tenant) {
  return absl::StrCat(tenant.deleted ? "the process of deleted pod " : "pod ", tenant.pod,
                      " (modules ", Text(tenant.modules), ")");
}

}  // namespace

std::set<int> Tenants::ModulesOf(const sim::ContainerResult& container) const {
  std::set<int> modules;
  for (const auto& [resource, ids] : container.devices) {
    for (const std::string& id : ids) {
      for (const BoardDevice& device : node_.board().devices) {
        if (device.address.ToString() == id) modules.insert(device.module);
      }
    }
  }
  return modules;
}

std::set<std::string> Tenants::NodesOf(const std::set<int>& modules) const {
  std::set<std::string> nodes = {"/dev/vfio/vfio"};
  for (const sim::FunctionState& function : node_.sysfs().functions()) {
    for (const int module : modules) {
      if (node_.AddressOf(module) == function.spec.address)
        nodes.insert(absl::StrCat("/dev/vfio/", function.group));
    }
  }
  return nodes;
}

std::set<int> Tenants::PartitionModules(int id) const {
  const BoardPartition* partition = node_.board().FindPartition(id);
  return {partition->modules.begin(), partition->modules.end()};
}

Tenant* Tenants::Find(const std::string& pod) {
  const auto found = std::find_if(tenants_.begin(), tenants_.end(), [&](const Tenant& tenant) {
    return tenant.pod == pod && !tenant.deleted;
  });
  return found == tenants_.end() ? nullptr : &*found;
}

void Tenants::Add(const std::string& pod, const sim::PodStatus& status) {
  Tenant tenant;
  tenant.pod = pod;
  tenant.modules = ModulesOf(status.containers[0]);
  for (const BoardPartition& partition : node_.board().partitions) {
    if (PartitionModules(partition.id) == tenant.modules) tenant.partition = partition.id;
  }
  story_.Tell("pod ", pod, " has modules ", Text(tenant.modules), ", partition ", tenant.partition);
  if (tenant.partition < 0)
    story_.Found(Wrong::kShared, absl::StrCat(Text(tenant), " has no partition's GPUs"));
  for (const Tenant& other : tenants_) {
    if (!Overlap(other.modules, tenant.modules)) continue;
    story_.Found(Wrong::kShared, absl::StrCat(Text(tenant), " was given GPUs of ", Text(other)));
  }
  tenants_.push_back(std::move(tenant));
}

void Tenants::Remove(const std::string& pod, bool linger) {
  Tenant* const tenant = Find(pod);
  story_.Tell("pod ", pod, " is deleted", linger ? ", its process lives on" : "");
  (void)node_.kubelet().RemovePod("default", pod);
  tenant->deleted = true;
  if (linger && tenant->started) return;
  EndProcess(*tenant);
  tenants_.erase(tenants_.begin() + (tenant - tenants_.data()));
}

void Tenants::EndLingering() {
  for (Tenant& tenant : tenants_) {
    if (!tenant.deleted) continue;
    story_.Tell(Text(tenant), " ends");
    EndProcess(tenant);
  }
  std::erase_if(tenants_, [](const Tenant& tenant) { return tenant.deleted; });
}

void Tenants::EndProcess(const std::string& pod) { EndProcess(*Find(pod)); }

void Tenants::StartProcess(Tenant& tenant) {
  for (const int module : tenant.modules) {
    const Result<pid_t> held = node_.Hold(node_.AddressOf(module));
    if (!held.ok()) story_.Found(Wrong::kLost, std::string(held.status().message()));
  }
  tenant.started = true;
}

void Tenants::EndProcess(Tenant& tenant) {
  for (const int module : tenant.modules) (void)node_.EndHolders(node_.AddressOf(module));
  tenant.started = false;
}

void Tenants::StartProcesses() {
  for (const sim::PodReport& pod : node_.kubelet().Pods()) {
    Tenant* const tenant = Find(pod.name);
    if (tenant == nullptr || tenant->started || pod.status.containers.empty()) continue;
    if (pod.status.containers[0].state == sim::ContainerState::kRunning) StartProcess(*tenant);
  }
}

void Tenants::Cut() {
  for (Tenant& tenant : tenants_) tenant.cut = true;
}

void Tenants::Cut(const std::string& pod) {
  if (Tenant* const tenant = Find(pod); tenant != nullptr) tenant->cut = true;
}

std::vector<std::string> Tenants::Pods(bool only_cut) const {
  std::vector<std::string> pods;
  for (const Tenant& tenant : tenants_) {
    if (!tenant.deleted && (tenant.cut || !only_cut)) pods.push_back(tenant.pod);
  }
  return pods;
}

bool Tenants::Fits(int size) const {
  return std::any_of(
      node_.board().partitions.begin(), node_.board().partitions.end(), [&](const auto& partition) {
        const std::set<int> modules = PartitionModules(partition.id);
        return static_cast<int>(modules.size()) == size &&
               std::none_of(tenants_.begin(), tenants_.end(),
                            [&](const Tenant& tenant) { return Overlap(tenant.modules, modules); });
      });
}

std::optional<std::string> Tenants::WaitingPod() const {
  for (const sim::PodReport& pod : node_.kubelet().Pods()) {
    if (!pod.status.admitted || pod.status.containers.empty()) continue;
    const sim::ContainerResult& container = pod.status.containers[0];
    if (container.state == sim::ContainerState::kWaiting)
      return absl::StrCat("pod ", pod.name, " can't start: ", container.waiting);
  }
  return std::nullopt;
}

void Tenants::AuditPods() {
  for (const sim::PodReport& pod : node_.kubelet().Pods()) {
    // Those in other namespaces have no GPUs.
    if (!pod.status.admitted || pod.ns != "default") continue;
    const Tenant* const tenant = Find(pod.name);
    const sim::ContainerResult& container = pod.status.containers[0];
    if (tenant == nullptr || ModulesOf(container) != tenant->modules) {
      story_.Found(Wrong::kShared, absl::StrCat("pod ", pod.name, " has modules ",
                                                Text(ModulesOf(container)), " now"));
      continue;
    }
    std::set<std::string> nodes;
    for (const sim::DeviceNode& node : container.nodes) nodes.insert(node.host_path);
    if (nodes != NodesOf(tenant->modules)) {
      story_.Found(Wrong::kShared,
                   absl::StrCat(Text(*tenant), " was given the nodes ", absl::StrJoin(nodes, " "),
                                " instead of ", absl::StrJoin(NodesOf(tenant->modules), " ")));
    }
  }
}

void Tenants::Audit() {
  AuditPods();
  const std::set<int> active = node_.fm().active();
  const std::set<int> routed = node_.fm().routed();
  std::set<int> live = active;
  live.insert(routed.begin(), routed.end());
  for (const Tenant& tenant : tenants_) {
    if (!tenant.cut && (!active.contains(tenant.partition) || !routed.contains(tenant.partition))) {
      story_.Found(Wrong::kLost,
                   absl::StrCat(Text(tenant), " lost its partition ", tenant.partition, ": ",
                                active.contains(tenant.partition) ? "not routed" : "not active"));
    }
    for (const int id : live) {
      if (id == tenant.partition || !Overlap(PartitionModules(id), tenant.modules)) continue;
      story_.Found(Wrong::kShared, absl::StrCat(Text(tenant), ": partition ", id, " (modules ",
                                                Text(PartitionModules(id)), ") is active"));
    }
  }
  for (const int a : live) {
    for (const int b : live) {
      if (a >= b || !Overlap(PartitionModules(a), PartitionModules(b))) continue;
      story_.Found(Wrong::kShared, absl::StrCat("partitions ", a, " and ", b, " are both active"));
    }
  }
}

}  // namespace switchyard::kill
