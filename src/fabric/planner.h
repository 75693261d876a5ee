// SPDX-License-Identifier: Apache-2.0
#pragma once

// The planner: which partition a request of `size` GPUs gets. Pure: no clock, no I/O, no memory;
// the same input gives the same answer. Linear in the number of partitions for each candidate.
//
// Candidates: complete partitions of exactly that many devices, all members available, holding the
// must-include ones. Policy pack ranks them by
//   1. active (and so unowned, its members being available); then overlapping no other active
//      partition; then overlapping only stale active ones (all members free); last overlapping an
//      active partition with a busy member (no candidate at all if `refuse_joining`);
//   2. fewest larger still-possible partitions broken: larger = more GPUs than the candidate, still
//      possible = every member usable and not busy, broken = shares a module with the candidate;
//   3. fewest NUMA nodes, each GPU of unknown node counting as one;
//   4. lowest id.
// Policy lowest-id: active first, then lowest id (the order of the plugin it replaces).

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fabric/module_set.h"
#include "fabric/partition_table.h"

namespace switchyard::fabric {

enum class Policy { kPack, kLowestId };
[[nodiscard]] absl::string_view PolicyName(Policy policy);  // "pack", "lowest-id"

struct PlanRequest {
  const PartitionTable* table = nullptr;  // never null; borrowed for the call
  int size = 0;                           // devices asked for
  ModuleSet available;
  ModuleSet must_include;
  // Held by somebody: assignment view, own grants, ledger; minus available and must_include.
  ModuleSet busy;
  // Mapped to a Healthy device.
  ModuleSet usable;
  // NUMA node of each module, by module id; -1 = unknown.
  std::array<int, kMaxModule + 1> numa_node = UnknownNodes();
  // Modules whose GPUs share an IOMMU group: taken together or not at all, and one device together.
  // Usually empty.
  std::vector<ModuleSet> shared_groups;
  Policy policy = Policy::kPack;
  bool refuse_joining = false;  // enforce: overlapping an active partition with a busy member

  static constexpr std::array<int, kMaxModule + 1> UnknownNodes() {
    std::array<int, kMaxModule + 1> nodes{};
    nodes.fill(-1);
    return nodes;
  }
};

enum class FabricTier : std::uint8_t { kActive, kFree, kOverlapsStale, kJoinsBusy };

struct Candidate {
  const Partition* partition = nullptr;
  FabricTier tier = FabricTier::kFree;
  int broken_larger = 0;
  int numa_nodes = 0;
};

// The best candidate, or nothing. No allocation.
[[nodiscard]] std::optional<Candidate> Choose(const PlanRequest& request);

// All of them, best first.
[[nodiscard]] std::vector<Candidate> Rank(const PlanRequest& request);

// One candidate's place in words: "free; breaks 1 larger partition (1); 2 NUMA nodes". Names the
// active partition and the busy module where it would join somebody.
[[nodiscard]] std::string Why(const PlanRequest& request, const Candidate& candidate);

// Why there is no candidate, in one sentence: "no partition has 3 GPUs; sizes are 1, 2, 4, 8".
[[nodiscard]] std::string WhyNone(const PlanRequest& request);

}  // namespace switchyard::fabric
