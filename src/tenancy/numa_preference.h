// SPDX-License-Identifier: Apache-2.0
#pragma once

// The choice without a fabric: devices of as few NUMA nodes as possible. Pure; any thread.
//
// The answer holds every must-include device and exactly `size` devices. Of all such sets it has
// the fewest nodes; among those the set of nodes that comes first when compared from its lowest
// node on; within these nodes the lowest addresses. A device of unknown node counts as a node of
// its own, after the known ones, by address.

#include <optional>
#include <span>
#include <vector>

#include "base/pci_address.h"

namespace switchyard::tenancy {

struct NumaDevice {
  PciAddress address;
  std::optional<int> node;
};

// Sorted by address. Empty if nothing fits: size below 1 or above what is available, more
// must-include devices than that, or one that is not available.
[[nodiscard]] std::vector<PciAddress> ChooseByNuma(std::span<const NumaDevice> available,
                                                   std::span<const PciAddress> must_include,
                                                   int size);

}  // namespace switchyard::tenancy
