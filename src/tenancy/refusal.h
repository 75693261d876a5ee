// SPDX-License-Identifier: Apache-2.0
#pragma once

// Why a request is refused: the reason as a label (metrics, events) beside the Status with its
// words. Plain value.

#include <cstdint>

#include "absl/strings/string_view.h"
#include "base/status.h"

namespace switchyard::tenancy {

enum class Refusal : std::uint8_t {
  kNoPartition,    // the set is no partition
  kUnmapped,       // a GPU without a module id
  kFabric,         // Fabric Manager is down, in the wrong mode, or never listed anything
  kDirty,          // Fabric Manager lost partitions that touch it
  kUncertain,      // the outcome of an earlier change is not known
  kOwned,          // kubelet or a claim still has a GPU of it
  kOwnerUnknown,   // nobody can say whether the former owner still has it
  kHeld,           // a process has a GPU of it open
  kForeign,        // an active partition of nobody is in the way and can't be judged
  kJournal,        // the journal can't be read or written
  kBoot,           // the boot id is not known
  kDraining,       // by the operator
  kBusy,           // another change was in progress for too long
  kFabricRefused,  // Fabric Manager failed the change
  kInvariant,      // a rule of the ledger would have been broken
};
inline constexpr int kRefusals = static_cast<int>(Refusal::kInvariant) + 1;

[[nodiscard]] absl::string_view RefusalName(Refusal refusal);  // "no_partition"

struct Refused {
  Refusal reason;
  Status status;  // never OK
};

}  // namespace switchyard::tenancy
