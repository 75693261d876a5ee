// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which devices are somebody's, as far as we know: kubelet's word, and our own grants that it may
// not have written down yet. Not thread-safe; the owner holds its lock.

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "base/pci_address.h"
#include "tenancy/assignments.h"

namespace switchyard::tenancy {

// kubelet records an allocation only after our answer has reached it, so a view read right after a
// grant may not list it yet. For this long such a grant is believed without kubelet's word.
inline constexpr absl::Duration kGrantSettles = absl::Seconds(10);

class Holdings {
 public:
  // Returns the grant's id. A device granted before belongs to the new grant.
  std::uint64_t Add(std::span<const PciAddress> devices, absl::Duration now);
  void Release(std::uint64_t grant_id);

  // `read_started`: monotonic. Ends the grants that the view lists or that have had time to appear.
  void SetView(Assignments view, absl::Duration read_started);

  // Of both kinds, each once, in order.
  [[nodiscard]] std::vector<PciAddress> Held() const;

 private:
  struct Own {
    std::uint64_t grant_id = 0;
    absl::Duration granted_at;
  };

  std::uint64_t next_id_ = 1;
  Assignments view_;
  std::map<PciAddress, Own> own_;  // at most one entry a device of the node
};

}  // namespace switchyard::tenancy
