// SPDX-License-Identifier: Apache-2.0
#pragma once

// Who has which GPUs by what can be seen from outside the agent: pods as kubelet knows them, each
// with a process that has its GPUs open, and what Fabric Manager and the switches make of them. The
// audit compares all of it; nothing in here asks the agent. One thread.

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/node/sim_node.h"
#include "tests/kill/story.h"

namespace switchyard::kill {

struct Tenant {
  std::string pod;
  std::set<int> modules;
  int partition = -1;
  bool started = false;  // its process runs
  bool deleted = false;  // the pod has gone, and its process is still there
  bool cut = false;      // Fabric Manager restarted cold under it: no partition is promised
};

class Tenants {
 public:
  Tenants(sim::SimNode& node, Story& story) : node_(node), story_(story) {}

  // The pod was admitted.
  void Add(const std::string& pod, const sim::PodStatus& status);
  // Deletes the pod; `linger`: its process outlives it, until EndLingering.
  void Remove(const std::string& pod, bool linger);
  void EndLingering();
  // Its containers have died; they are to be started again.
  void EndProcess(const std::string& pod);
  // Starts the processes of pods whose containers run.
  void StartProcesses();
  void Cut();  // all who are there now
  void Cut(const std::string& pod);

  [[nodiscard]] const std::vector<Tenant>& all() const { return tenants_; }
  [[nodiscard]] std::vector<std::string> Pods(bool only_cut = false) const;
  // A partition of that size none of whose GPUs anybody has.
  [[nodiscard]] bool Fits(int size) const;
  [[nodiscard]] std::optional<std::string> WaitingPod() const;  // kubelet's message of why

  [[nodiscard]] std::set<int> PartitionModules(int id) const;

  // At a quiet point: Fabric Manager serves, kubelet admits nobody. Tells the story what is wrong.
  void Audit();

 private:
  [[nodiscard]] std::set<int> ModulesOf(const sim::ContainerResult& container) const;
  [[nodiscard]] std::set<std::string> NodesOf(const std::set<int>& modules) const;
  void AuditPods();
  Tenant* Find(const std::string& pod);
  void StartProcess(Tenant& tenant);
  void EndProcess(Tenant& tenant);

  sim::SimNode& node_;
  Story& story_;
  std::vector<Tenant> tenants_;
};

}  // namespace switchyard::kill
