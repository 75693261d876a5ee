// SPDX-License-Identifier: Apache-2.0
#pragma once

// What kubelet is told to prefer: translation of its devices into the planner's modules and back.
// Pure; any thread. Never an error: an empty preference has its reason.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/pci_address.h"
#include "fabric/module_set.h"
#include "fabric/planner.h"

namespace switchyard::tenancy {

struct Picture;

struct Preference {
  // Empty = no preference. In the order of the modules, without a fabric of the addresses.
  std::vector<PciAddress> devices;
  std::optional<int> partition;
  bool active = false;               // that partition, by the last list read
  int candidates = 0;                // partitions that fit
  std::vector<PciAddress> unmapped;  // available, but without a module id: not selectable
  std::string reason;                // for the log: why this, or why none
};

struct PreferenceRequest {
  std::span<const PciAddress> available;
  std::span<const PciAddress> must_include;
  int size = 0;
  // Acquire would refuse them though kubelet offers them (Enforcer::ToAvoid): only if nothing else
  // fits.
  fabric::ModuleSet avoid;
};

// By partitions. `held`: modules of the assignment view, of our own grants and of tenancies.
// `refuse_joining`: see PlanRequest.
[[nodiscard]] Preference PreferPartition(const Picture& picture, fabric::ModuleSet held,
                                         fabric::Policy policy, const PreferenceRequest& request,
                                         bool refuse_joining = false);

// Without a fabric: by NUMA nodes.
[[nodiscard]] Preference PreferNodes(const Picture& picture, const PreferenceRequest& request);

}  // namespace switchyard::tenancy
