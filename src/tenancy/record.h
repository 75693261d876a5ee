// SPDX-License-Identifier: Apache-2.0
#pragma once

// One tenancy: an owner's hold on the GPUs of one partition, as the journal keeps it. The set of
// modules is its identity on the fabric; ids of partitions may change with Fabric Manager's table.
// Plain values.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/pci_address.h"
#include "base/status.h"
#include "fabric/module_set.h"
#include "pci/inventory.h"
#include "tenancy/assignments.h"

namespace switchyard::tenancy {

// The kernel's random boot id (/proc/sys/kernel/random/boot_id); all zero = unknown.
struct BootId {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  // "1b4e28ba-2fa1-11d2-883f-0016d3cca427", with or without a line end.
  [[nodiscard]] static Result<BootId> Parse(absl::string_view text);
  [[nodiscard]] std::string ToString() const;
  [[nodiscard]] bool known() const { return (high | low) != 0; }
  friend bool operator==(const BootId&, const BootId&) = default;
};

// In the order of a life; a tenancy that is gone is in no ledger and no journal.
enum class TenancyState : std::uint8_t {
  kPlanned,     // nothing was touched
  kActivating,  // Fabric Manager is, or may have been, asked to activate
  kActive,      // its partition was seen active, and its devices may be handed over
  kReleasing,   // Fabric Manager is, or may have been, asked to deactivate
};
[[nodiscard]] absl::string_view TenancyStateName(TenancyState state);  // "planned"

// What a function was on before we bound it to vfio. Absent where we bound nothing.
struct PriorDriver {
  std::string driver;    // empty: none
  std::string override;  // driver_override; empty: none
  friend bool operator==(const PriorDriver&, const PriorDriver&) = default;
};

struct TenancyFunction {
  PciAddress address;
  std::string cdev;  // "vfio3"; empty: none
  std::optional<PriorDriver> prior;
  friend bool operator==(const TenancyFunction&, const TenancyFunction&) = default;
};

// A device as it was granted: the nodes a container may still name after a reboot.
struct TenancyDevice {
  PciAddress address;  // as asked for
  pci::Backend backend = pci::Backend::kLegacy;
  int iommu_group = 0;
  std::vector<TenancyFunction> functions;
  friend bool operator==(const TenancyDevice&, const TenancyDevice&) = default;
};

// Whether a container that was given `then` finds the same hardware behind the same names now.
[[nodiscard]] bool SameNodes(const TenancyDevice& then, const TenancyDevice& now);

struct TenancyRecord {
  std::uint64_t id = 0;  // never used twice
  TenancyState state = TenancyState::kPlanned;
  // A claim is known at once; a pod's device set is learned from the assignment view.
  std::optional<Owner> owner;
  // True: lives until its owner releases it (claims). False: until two views agree that nobody
  // has it.
  bool until_released = false;
  bool adopted = false;  // found active, not activated by us
  bool lost = false;     // active in `boot`, and then seen inactive without having been asked for
  int partition = 0;     // Fabric Manager's id when it was last asked
  fabric::ModuleSet modules;
  std::vector<TenancyDevice> devices;
  BootId boot;         // in which its partition was last activated or seen active
  absl::Time begun;    // wall clock
  absl::Time changed;  // of the last change of state
  friend bool operator==(const TenancyRecord&, const TenancyRecord&) = default;
};

}  // namespace switchyard::tenancy
