// SPDX-License-Identifier: Apache-2.0
#pragma once

// Who has the devices open: the view that must agree before anything is taken away. Implemented
// over src/pci; a model in tests. The Enforcer makes one call at a time, AwaitChange without its
// lock.

#include <span>

#include "absl/time/time.h"
#include "base/pci_address.h"
#include "base/status.h"
#include "pci/holders.h"

namespace switchyard::tenancy {

class HolderSource {
 public:
  virtual ~HolderSource() = default;

  // `devices` as kubelet knows them (the lead of each IOMMU group); a holder of any function of
  // the group is a holder of the device. An error means: nobody can tell, so all are held.
  [[nodiscard]] virtual Result<pci::Holders> Look(std::span<const PciAddress> devices) = 0;

  // The last question before a partition is deactivated: opens and closes the device's group node.
  // True: somebody has it. A device that is gone from the node is not busy.
  [[nodiscard]] virtual Result<bool> IsBusy(const PciAddress& device) = 0;

  // Returns when one of these holders' processes has ended, or after `at_most`.
  virtual void AwaitChange(const pci::Holders& holders, absl::Duration at_most) = 0;
};

}  // namespace switchyard::tenancy
