// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests only: the allocation policy once more, written from its words (planner.h) with sets and
// plain loops, as slowly as it reads. It shares no code and no representation with planner.cpp,
// which must agree with it on every input.

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "fabric/planner.h"

namespace switchyard::fabric::oracle {

using Modules = std::set<int>;

struct Board {
  struct Part {
    int id = 0;
    bool active = false;
    bool every_gpu_has_a_module = true;
    Modules modules;
  };
  std::vector<Part> parts;
  Modules available, must_include, busy, healthy;
  std::map<int, int> node_of;  // only modules of known node
  std::vector<Modules> groups;
  int asked = 0;
  bool pack = true;
  bool enforce = false;
};

inline bool Disjoint(const Modules& a, const Modules& b) {
  return std::none_of(a.begin(), a.end(), [&](int m) { return b.contains(m); });
}
inline bool Inside(const Modules& a, const Modules& b) {
  return std::all_of(a.begin(), a.end(), [&](int m) { return b.contains(m); });
}

inline Board FromRequest(const PlanRequest& request) {
  const auto set = [](ModuleSet modules) {
    const std::vector<ModuleId> v = modules.ToVector();
    return Modules(v.begin(), v.end());
  };
  Board board;
  for (const Partition& p : request.table->partitions)
    board.parts.push_back({p.id, p.active, p.complete, set(p.modules)});
  board.available = set(request.available);
  board.must_include = set(request.must_include);
  board.healthy = set(request.usable);
  // "minus available and must-include"
  for (int m : set(request.busy)) {
    if (!board.available.contains(m) && !board.must_include.contains(m)) board.busy.insert(m);
  }
  for (int m = 1; m <= 16; ++m) {
    const int node = request.numa_node[static_cast<size_t>(m)];
    if (node >= 0) board.node_of[m] = node;
  }
  for (ModuleSet g : request.shared_groups) board.groups.push_back(set(g));
  board.asked = request.size;
  board.pack = request.policy == Policy::kPack;
  board.enforce = request.refuse_joining;
  return board;
}

// A kubelet device is one GPU, or all GPUs of one IOMMU group. Nothing if a group would be split.
inline std::optional<int> Devices(const Board& board, const Modules& modules) {
  std::set<Modules> devices;
  for (int m : modules) {
    Modules device = {m};
    for (const Modules& group : board.groups) {
      if (group.contains(m)) device = group;
    }
    if (!Inside(device, modules)) return std::nullopt;
    devices.insert(device);
  }
  return static_cast<int>(devices.size());
}

// Is everybody in `part` known to be free? A GPU without a module id may be anybody's.
inline bool AllMembersFree(const Board& board, const Board::Part& part) {
  return part.every_gpu_has_a_module && Disjoint(part.modules, board.busy);
}

struct Standing {
  int tier = 0;  // 1 best .. 4 worst
  int broken = 0;
  int nodes = 0;
  int id = 0;
};

inline std::optional<Standing> Judge(const Board& board, const Board::Part& candidate) {
  if (board.asked <= 0 || !candidate.every_gpu_has_a_module) return std::nullopt;
  if (Devices(board, candidate.modules) != board.asked) return std::nullopt;
  if (!Inside(candidate.modules, board.available)) return std::nullopt;
  if (!Inside(board.must_include, candidate.modules)) return std::nullopt;

  bool overlaps_stale = false;
  bool joins = false;
  for (const Board::Part& other : board.parts) {
    if (other.id == candidate.id || !other.active) continue;
    if (Disjoint(other.modules, candidate.modules)) continue;
    if (AllMembersFree(board, other)) {
      overlaps_stale = true;
    } else {
      joins = true;
    }
  }
  if (joins && board.enforce) return std::nullopt;

  Standing standing;
  standing.id = candidate.id;
  standing.tier = candidate.active ? 1 : joins ? 4 : overlaps_stale ? 3 : 2;
  for (const Board::Part& other : board.parts) {
    const bool larger = other.modules.size() > candidate.modules.size();
    const bool possible = other.every_gpu_has_a_module && Inside(other.modules, board.healthy) &&
                          Disjoint(other.modules, board.busy);
    if (larger && possible && !Disjoint(other.modules, candidate.modules)) ++standing.broken;
  }
  std::set<int> nodes;
  int of_unknown_node = 0;
  for (int m : candidate.modules) {
    if (board.node_of.contains(m)) {
      nodes.insert(board.node_of.at(m));
    } else {
      ++of_unknown_node;
    }
  }
  standing.nodes = static_cast<int>(nodes.size()) + of_unknown_node;
  return standing;
}

inline bool Before(const Board& board, const Standing& a, const Standing& b) {
  if (!board.pack) {
    const bool a_active = a.tier == 1;
    const bool b_active = b.tier == 1;
    if (a_active != b_active) return a_active;
    return a.id < b.id;
  }
  if (a.tier != b.tier) return a.tier < b.tier;
  if (a.broken != b.broken) return a.broken < b.broken;
  if (a.nodes != b.nodes) return a.nodes < b.nodes;
  return a.id < b.id;
}

// All candidates, best first: the best is searched, taken out, and so on.
inline std::vector<Standing> Answer(const PlanRequest& request) {
  const Board board = FromRequest(request);
  std::vector<Standing> left;
  for (const Board::Part& part : board.parts) {
    if (const auto standing = Judge(board, part)) left.push_back(*standing);
  }
  std::vector<Standing> ranked;
  while (!left.empty()) {
    size_t best = 0;
    for (size_t i = 1; i < left.size(); ++i) {
      if (Before(board, left[i], left[best])) best = i;
    }
    ranked.push_back(left[best]);
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(best));
  }
  return ranked;
}

}  // namespace switchyard::fabric::oracle
