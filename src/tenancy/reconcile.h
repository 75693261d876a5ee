// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the reconciler does about each tenancy, and about active partitions of nobody: from the four
// views (journal, Fabric Manager's list, kubelet's listing, holders) to actions. Pure; the same
// views give the same actions. What can't be judged is kept.
//
// A tenancy is unused when two views agree that nobody has it: kubelet's listing, read after the
// grant had time to appear there, has none of its devices, and nobody holds one. It is released
// when they have agreed for longer than the grace, by a listing read after that. A listing that is
// not whole never says that nobody has it.

#include <cstdint>
#include <optional>
#include <span>

#include "absl/container/inlined_vector.h"
#include "absl/time/time.h"
#include "fabric/module_set.h"
#include "fabric/partition_table.h"
#include "tenancy/ledger.h"
#include "tenancy/listing.h"

namespace switchyard::tenancy {

// What is known of a tenancy beside its record, in memory only: losing it costs time, never safety.
struct Watch {
  std::uint64_t id = 0;
  absl::Duration granted_at;  // monotonic; after a start: the start
  std::optional<absl::Duration> unused_since = {};
  // A change was asked of Fabric Manager and nobody knows what came of it, since then.
  std::optional<absl::Duration> uncertain_since = {};
  int unanswered = 0;  // how many such changes, if known
  // Its request was refused in the end: nobody was given it, so no grace is needed.
  bool abandoned = false;
  // Its devices have other nodes now than when it was granted.
  bool other_nodes = false;
  bool orphaned = false;  // Decision::orphaned, at the last look
};

struct ReconcileInput {
  const Ledger* ledger = nullptr;
  std::span<const Watch> watches;                 // one a tenancy, any order
  const fabric::PartitionTable* table = nullptr;  // null: none is known
  bool fabric_up = false;                         // the table is what Fabric Manager says now
  absl::Duration fabric_read;                     // monotonic, when its reading began
  const Listing* listing = nullptr;
  fabric::ModuleSet held;    // may be held
  fabric::ModuleSet looked;  // `held` speaks of these; of others nothing is known
  BootId boot;

  absl::Duration grace;
  absl::Duration settle;  // how long a change without an answer may still happen
  bool reactivate_at_start = false;
};

enum class Act : std::uint8_t {
  kKeep,
  kConfirm,     // activating, lost or of a former boot, and active: write it down
  kRelease,     // deactivate, then forget
  kForget,      // nothing of it is active: erase the record
  kReactivate,  // of a former boot, wanted before its consumer starts
  kAdopt,       // an active partition of nobody whose members one owner has
  kReport,      // keep, and say so
};

enum class Why : std::uint8_t {
  kInUse,        // listed
  kHeld,         // not listed, held
  kGrace,        // unused, not yet for long enough
  kUnjudged,     // a view is missing
  kPodsUnknown,  // not listed by a kubelet that need not know its pods yet, and not held
  kUnused,       // two views agreed for longer than the grace
  kAbandoned,    // its request was refused
  kNeverBegan,   // planned, or activating and never active
  kUncertain,    // wait for the outcome of a change
  kUnfinished,   // a release that was begun
  kActive,       // seen active
  kRebooted,     // activated before the last reboot
  kLost,         // Fabric Manager has it inactive, and nobody asked for that
  kVanished,     // no partition has its modules any more
  kForeign,      // active, of nobody
};

struct Decision {
  Act act = Act::kKeep;
  Why why = Why::kInUse;
  std::uint64_t tenancy = 0;                     // 0: of an active partition of nobody
  const fabric::Partition* partition = nullptr;  // in the table of now; null: none
  const Listing::Entry* owner = nullptr;         // who has it by kubelet's word
  bool unused = false;                           // by both views, now
  bool unproved = false;                         // it would be, were the listing whole
  bool orphaned = false;                         // kubelet lists nobody, and it is held; now
};
using Decisions = absl::InlinedVector<Decision, 16>;

// Modules of which holders must be known to decide: of tenancies that aren't listed, and of active
// partitions of nobody. Looking at holders is the dear part of a pass.
[[nodiscard]] fabric::ModuleSet WorthLooking(const ReconcileInput& in);

[[nodiscard]] Decisions Reconcile(const ReconcileInput& in);

// Modules of tenancies whose partition Fabric Manager lost in this boot: dirty until they are gone.
[[nodiscard]] fabric::ModuleSet LostModules(const Ledger& ledger,
                                            const fabric::PartitionTable& table,
                                            const BootId& boot);

[[nodiscard]] absl::string_view ActName(Act act);
[[nodiscard]] absl::string_view WhyText(Why why);

}  // namespace switchyard::tenancy
