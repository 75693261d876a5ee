// SPDX-License-Identifier: Apache-2.0
#pragma once

// A request for exactly these modules, judged: from views to what must be done. Pure; no text on
// the way to a yes (enforcer_words.cpp has the words of a no).
//
// In the way are the tenancies and the active partitions of nobody that overlap the request. All of
// them must be free before anything is taken away: no member held, no owner that has them by
// kubelet's word of this moment. An owner that was never learned has nothing: the container that
// got the devices was an init container, or its pod was refused.

#include <cstdint>
#include <optional>
#include <span>

#include "absl/container/inlined_vector.h"
#include "fabric/module_set.h"
#include "fabric/partition_table.h"
#include "tenancy/ledger.h"
#include "tenancy/listing.h"
#include "tenancy/refusal.h"

namespace switchyard::tenancy {

// What one owner answered about the devices in question.
enum class Possession : std::uint8_t { kHas, kHasNot, kUnknown };

// Owners that must be asked first, and their answers once they were.
struct Claimant {
  const Owner* owner = nullptr;  // borrowed from ledger or listing
  fabric::ModuleSet modules;     // that it may have
  std::uint64_t tenancy = 0;     // whose owner it is; 0: only listed
  Possession answer = Possession::kUnknown;
};
using Claimants = absl::InlinedVector<Claimant, 4>;

struct AdmitInput {
  const Ledger* ledger = nullptr;
  const fabric::PartitionTable* table = nullptr;
  const Listing* listing = nullptr;
  fabric::ModuleSet modules;     // asked for
  const Owner* owner = nullptr;  // who asks, if known
  fabric::ModuleSet uncertain;   // of tenancies whose last change has no known outcome
  fabric::ModuleSet unsettled;   // the same, and those whose activation only the list shows
  fabric::ModuleSet doubtful;    // of foreign partitions whose last change has no known outcome
  fabric::ModuleSet lost;        // of foreign partitions that Fabric Manager lost, still in use
};

// The request and everything in its way.
[[nodiscard]] fabric::ModuleSet Involved(const AdmitInput& in);
// Something other than the request itself is in the way: then holders are looked for by name, and
// not only asked whether the request's own devices are busy.
[[nodiscard]] bool SomethingInTheWay(const AdmitInput& in);

// Each owner once; none that asks itself.
[[nodiscard]] Claimants ClaimantsOf(const AdmitInput& in, fabric::ModuleSet involved);

struct Admission {
  enum class What : std::uint8_t {
    kBegin,   // a new tenancy, once what is in the way is gone
    kAgain,   // grant `tenancy` again
    kAdopt,   // a new tenancy on a partition of nobody that is active already
    kWait,    // held: may succeed once the holder has gone
    kRefuse,  // see `reason`
  };
  What what = What::kRefuse;
  Refusal reason = Refusal::kInvariant;
  const fabric::Partition* partition = nullptr;  // that is exactly the request
  std::uint64_t tenancy = 0;                     // of kAgain
  const Claimant* claimant = nullptr;            // of kOwned and kOwnerUnknown
  const TenancyRecord* blocker = nullptr;        // of kUncertain and kOwned
  const fabric::Partition* foreign = nullptr;    // of kForeign
  fabric::ModuleSet held;                        // of kWait
  absl::InlinedVector<std::uint64_t, 4> release_first;
  absl::InlinedVector<const fabric::Partition*, 4> deactivate_first;  // of nobody
};

// `held`: of the involved modules, those that may be held.
[[nodiscard]] Admission Admit(const AdmitInput& in, const Claimants& claimants,
                              fabric::ModuleSet held);

}  // namespace switchyard::tenancy
