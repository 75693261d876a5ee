// SPDX-License-Identifier: Apache-2.0
#pragma once

// What operators, metrics and tests see of `enforce`: one consistent copy. Plain values.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "fabric/module_set.h"
#include "fabric/partition_table.h"
#include "tenancy/record.h"

namespace switchyard::tenancy {

// One action of the reconciler, in words an operator reads.
struct PlannedAction {
  // ActName: "keep", "confirm", "release", "forget", "reactivate", "adopt", "report"
  absl::string_view action;
  std::optional<std::uint64_t> tenancy;
  std::optional<int> partition;
  fabric::ModuleSet modules;
  std::string why;
};

struct TenancyView {
  TenancyRecord record;
  std::optional<int> partition;  // in the table of now; none: the set vanished from it
  bool active = false;           // that partition, by the last list
  bool listed = false;           // by kubelet's last word
  // How long both views have agreed that nobody has it; none: they don't.
  std::optional<absl::Duration> unused_for;
  // A list of kubelet's has nobody for it, though it had time to, and it may be held open.
  bool orphaned = false;
  bool uncertain = false;  // a change of its partition was asked for, its outcome is not known
};

struct PartitionView {
  int id = 0;
  fabric::ModuleSet modules;
  bool active = false;
  std::optional<std::uint64_t> tenancy;   // the one that owns it
  bool foreign = false;                   // active and of no tenancy
  std::optional<absl::Time> stale_since;  // foreign: when it was first seen without a user
  // Live tenancies and foreign active partitions that overlap it: why it can't be had now.
  std::vector<std::uint64_t> blocked_by_tenancies;
  std::vector<int> blocked_by_partitions;
};

struct EnforceView {
  std::vector<TenancyView> tenancies;
  std::vector<PartitionView> partitions;
  fabric::ModuleSet dirty;  // of tenancies whose partition Fabric Manager lost
  bool fabric_up = false;
  std::string fabric_problem;   // why nothing can be changed; empty: it can
  std::string journal_problem;  // empty: it can be read and written
  // kubelet named no pod but static ones since it started: what it does not list is kept.
  bool pods_unknown = false;
  bool draining = false;
  // Since the start. Keys are bounded: reasons are those of refusal.h, codes those of FabricCodeOf
  // or, where Fabric Manager said nothing, of Status.
  std::map<std::string, std::uint64_t> refusals;         // by reason
  std::map<std::string, std::uint64_t> actions;          // of the reconciler, by name
  std::map<std::string, std::uint64_t> fabric_failures;  // "activate -7", "set_activated ABORTED"
  std::uint64_t activations = 0;                         // that the list showed
  std::uint64_t deactivations = 0;
};

}  // namespace switchyard::tenancy
