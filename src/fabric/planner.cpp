// SPDX-License-Identifier: Apache-2.0
#include "fabric/planner.h"

#include <algorithm>
#include <tuple>

#include "absl/container/inlined_vector.h"
#include "fabric/planner_rules.h"

namespace switchyard::fabric {
namespace {

// What is worth knowing once a request rather than once a candidate.
class Judge {
 public:
  explicit Judge(const PlanRequest& request) : request_(request) {
    const ModuleSet busy = BusyModules(request);
    for (const Partition& p : request.table->partitions) {
      if (p.active) active_.push_back({&p, p.modules, AllMembersFree(p, busy)});
      // A candidate has at least as many GPUs as devices were asked for.
      const int size = p.modules.size();
      if (size > request.size && StillPossible(p, busy, request.usable))
        larger_.push_back({p.modules, size});
    }
    for (ModuleId m = kMinModule; m <= kMaxModule; ++m) AddNode(m);
  }

  [[nodiscard]] std::optional<Candidate> Consider(const Partition& partition) const {
    if (!Fits(partition)) return std::nullopt;
    const ModuleSet modules = partition.modules;
    bool stale = false;
    bool joins = false;
    for (const ActivePartition& other : active_) {
      if (other.partition == &partition || !other.modules.Overlaps(modules)) continue;
      (other.all_free ? stale : joins) = true;
    }
    if (joins && request_.refuse_joining) return std::nullopt;

    Candidate candidate{&partition, FabricTier::kFree, 0, NodesOf(modules)};
    if (stale) candidate.tier = FabricTier::kOverlapsStale;
    if (joins) candidate.tier = FabricTier::kJoinsBusy;
    if (partition.active) candidate.tier = FabricTier::kActive;
    const int size = modules.size();
    for (const LargerPartition& other : larger_)
      candidate.broken_larger += other.size > size && other.modules.Overlaps(modules) ? 1 : 0;
    return candidate;
  }

  [[nodiscard]] bool Better(const Candidate& a, const Candidate& b) const {
    if (request_.policy == Policy::kLowestId) {
      const auto key = [](const Candidate& c) {
        return std::tuple(c.tier != FabricTier::kActive, c.partition->id);
      };
      return key(a) < key(b);
    }
    const auto key = [](const Candidate& c) {
      return std::tuple(c.tier, c.broken_larger, c.numa_nodes, c.partition->id);
    };
    return key(a) < key(b);
  }

 private:
  [[nodiscard]] bool Fits(const Partition& partition) const {
    return partition.complete && request_.size > 0 &&
           request_.available.ContainsAll(partition.modules) &&
           partition.modules.ContainsAll(request_.must_include) &&
           DevicesIn(partition.modules, request_.shared_groups) == request_.size;
  }

  // One set of modules a NUMA node.
  void AddNode(ModuleId m) {
    const int node = request_.numa_node[static_cast<size_t>(m)];
    if (node < 0) {
      unknown_node_.Insert(m);
      return;
    }
    size_t i = 0;
    while (i < node_count_ && node_ids_[i] != node) ++i;
    if (i == node_count_) node_ids_[node_count_++] = node;
    nodes_[i].Insert(m);
  }

  [[nodiscard]] int NodesOf(ModuleSet modules) const {
    int nodes = (modules & unknown_node_).size();
    for (size_t i = 0; i < node_count_; ++i) nodes += nodes_[i].Overlaps(modules) ? 1 : 0;
    return nodes;
  }

  struct ActivePartition {
    const Partition* partition;
    ModuleSet modules;
    bool all_free;
  };
  struct LargerPartition {
    ModuleSet modules;
    int size;
  };

  const PlanRequest& request_;
  // FM's limit fits inline: no allocation.
  absl::InlinedVector<ActivePartition, kMaxPartitions> active_;
  absl::InlinedVector<LargerPartition, kMaxPartitions> larger_;
  ModuleSet unknown_node_;
  size_t node_count_ = 0;
  std::array<int, kMaxModule> node_ids_{};
  std::array<ModuleSet, kMaxModule> nodes_;
};

}  // namespace

absl::string_view PolicyName(Policy policy) {
  return policy == Policy::kPack ? "pack" : "lowest-id";
}

std::optional<Candidate> Choose(const PlanRequest& request) {
  const Judge judge(request);
  std::optional<Candidate> best;
  for (const Partition& partition : request.table->partitions) {
    const auto candidate = judge.Consider(partition);
    if (candidate && (!best || judge.Better(*candidate, *best))) best = candidate;
  }
  return best;
}

std::vector<Candidate> Rank(const PlanRequest& request) {
  const Judge judge(request);
  std::vector<Candidate> candidates;
  for (const Partition& partition : request.table->partitions) {
    if (const auto candidate = judge.Consider(partition)) candidates.push_back(*candidate);
  }
  std::sort(candidates.begin(), candidates.end(),
            [&](const Candidate& a, const Candidate& b) { return judge.Better(a, b); });
  return candidates;
}

}  // namespace switchyard::fabric
