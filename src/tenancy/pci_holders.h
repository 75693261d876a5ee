// SPDX-License-Identifier: Apache-2.0
#pragma once

// HolderSource over src/pci: processes by /proc, devices by their group nodes, exits by pidfd. Made
// for the Enforcer, which makes one call at a time and never two for one device.

#include <map>
#include <vector>

#include "base/clock.h"
#include "base/host_root.h"
#include "tenancy/holder_source.h"

namespace switchyard::tenancy {

class PciHolders final : public HolderSource {
 public:
  PciHolders(HostRoot root, Clock& clock) : root_(std::move(root)), clock_(clock) {}

  Result<pci::Holders> Look(std::span<const PciAddress> devices) override;
  Result<bool> IsBusy(const PciAddress& device) override;
  void AwaitChange(const pci::Holders& holders, absl::Duration at_most) override;

 private:
  const HostRoot root_;
  Clock& clock_;
  // Numbers that a device once had: its old node may still be open after it was bound anew.
  std::map<PciAddress, std::vector<dev_t>> numbers_;
};

}  // namespace switchyard::tenancy
