// SPDX-License-Identifier: Apache-2.0
#pragma once

// The assignment view: which devices kubelet says are somebody's. Implemented in src/kube (from
// PodResources), wired by the agent.

#include <map>
#include <span>
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

// One answer. A kubelet that starts while the API server is out of reach lists no pods but static
// ones, for hours perhaps, and later starts the others from its checkpoint.
struct AssignmentView {
  Assignments devices;
  // kubelet has shown that it knows its pods, so what is not in `devices` is nobody's by its word.
  // Otherwise only what is in it says anything.
  bool whole = false;
};

// Devices that must not be offered, each with one sentence: why, and what ends it. Equal texts are
// one state: an event is made each time a text changes.
using BlockedDevices = std::map<PciAddress, std::string>;

class AssignmentSource {
 public:
  virtual ~AssignmentSource() = default;
  // Blocks up to a deadline of its own (2 s). One caller at a time.
  [[nodiscard]] virtual Result<AssignmentView> Read() = 0;

  // Whether `owner` is still there and has any of `devices` at this moment. The only question that
  // may be asked while an Allocate is in flight (PodResources Get). Bounded like Read; any thread.
  // An error means that nobody can tell; it is never taken for a no.
  [[nodiscard]] virtual Result<bool> StillHas(const Owner& owner,
                                              std::span<const PciAddress> devices) {
    (void)owner, (void)devices;
    return absl::UnimplementedError("this source can't be asked for one owner");
  }
};

}  // namespace switchyard::tenancy
