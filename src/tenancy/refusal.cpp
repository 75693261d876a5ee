// SPDX-License-Identifier: Apache-2.0
#include "tenancy/refusal.h"

namespace switchyard::tenancy {

absl::string_view RefusalName(Refusal refusal) {
  switch (refusal) {
    case Refusal::kNoPartition:
      return "no_partition";
    case Refusal::kUnmapped:
      return "unmapped";
    case Refusal::kFabric:
      return "fabric";
    case Refusal::kDirty:
      return "dirty";
    case Refusal::kUncertain:
      return "uncertain";
    case Refusal::kOwned:
      return "owned";
    case Refusal::kOwnerUnknown:
      return "owner_unknown";
    case Refusal::kHeld:
      return "held";
    case Refusal::kForeign:
      return "foreign";
    case Refusal::kJournal:
      return "journal";
    case Refusal::kBoot:
      return "boot";
    case Refusal::kDraining:
      return "draining";
    case Refusal::kBusy:
      return "busy";
    case Refusal::kFabricRefused:
      return "fabric_refused";
    case Refusal::kInvariant:
      return "invariant";
  }
  return "unknown";
}

}  // namespace switchyard::tenancy
