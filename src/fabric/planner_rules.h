// SPDX-License-Identifier: Apache-2.0
#pragma once

// The words of the allocation policy as predicates, shared by the planner (planner.cpp) and its
// explanations (planner_why.cpp) so that both mean the same. Pure; no allocation; any thread.

#include "fabric/planner.h"

namespace switchyard::fabric {

// Held by somebody and not on offer.
[[nodiscard]] inline ModuleSet BusyModules(const PlanRequest& request) {
  return request.busy - request.available - request.must_include;
}

// Known to be free, every member: a GPU without a module id may be anybody's.
[[nodiscard]] inline bool AllMembersFree(const Partition& partition, ModuleSet busy) {
  return partition.complete && !partition.modules.Overlaps(busy);
}

// Could be granted as a whole one day without waiting for repair or for a tenant to leave.
[[nodiscard]] inline bool StillPossible(const Partition& partition, ModuleSet busy,
                                        ModuleSet usable) {
  return AllMembersFree(partition, busy) && usable.ContainsAll(partition.modules);
}

// How many kubelet devices `modules` are, GPUs of one IOMMU group being one; 0 if a group would be
// split.
[[nodiscard]] inline int DevicesIn(ModuleSet modules, const std::vector<ModuleSet>& shared_groups) {
  int devices = modules.size();
  for (ModuleSet group : shared_groups) {
    if (!group.Overlaps(modules)) continue;
    if (!modules.ContainsAll(group)) return 0;
    devices -= group.size() - 1;
  }
  return devices;
}

}  // namespace switchyard::fabric
