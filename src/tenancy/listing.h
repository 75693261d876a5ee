// SPDX-License-Identifier: Apache-2.0
#pragma once

// The assignment view in modules: what kubelet last said, joined with the board. Plain value.

#include <span>
#include <vector>

#include "absl/time/time.h"
#include "fabric/module_map.h"
#include "fabric/module_set.h"
#include "tenancy/assignments.h"
#include "tenancy/board.h"
#include "tenancy/ledger.h"

namespace switchyard::tenancy {

struct Listing {
  struct Entry {
    Owner owner;
    fabric::ModuleSet modules;  // that it may have
    fabric::ModuleSet sure;     // of these, those that it has
    std::vector<PciAddress> devices;
  };
  bool known = false;           // there was an answer since the start
  bool whole = false;           // what it lacks is nobody's, see AssignmentView
  absl::Duration read_started;  // monotonic, of the last answer
  std::vector<Entry> entries;   // one an owner
  fabric::ModuleSet modules;    // of all entries
  fabric::ModuleSet sure;

  // The owner that has all of `modules` for sure; null if there is none.
  [[nodiscard]] const Entry* OwnerOfAll(fabric::ModuleSet modules) const;
};

// `map` speaks for devices that are gone from the board: they are still somebody's. `ledger` speaks
// for those that are granted, whatever the map says by now: whoever has one has the tenancy's
// modules. A GPU of no tenancy and without a module id may be any that no GPU has.
[[nodiscard]] Listing MakeListing(const AssignmentView& view, absl::Duration read_started,
                                  const Board& board, const fabric::ModuleMap& map,
                                  const Ledger& ledger);

}  // namespace switchyard::tenancy
