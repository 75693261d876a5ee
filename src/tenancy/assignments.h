// SPDX-License-Identifier: Apache-2.0
#pragma once

// The assignment view: which devices kubelet says are somebody's. Implemented in src/kube (from
// PodResources), wired by the agent.

#include <map>
#include <string>

#include "base/pci_address.h"
#include "base/status.h"

namespace switchyard::tenancy {

// kind "pod", key "namespace/name". Opaque here.
struct Owner {
  std::string kind;
  std::string key;
  friend bool operator==(const Owner&, const Owner&) = default;
};

using Assignments = std::map<PciAddress, Owner>;

class AssignmentSource {
 public:
  virtual ~AssignmentSource() = default;
  // Blocks up to a deadline of its own (2 s). One caller at a time.
  [[nodiscard]] virtual Result<Assignments> Read() = 0;
};

}  // namespace switchyard::tenancy
