// SPDX-License-Identifier: Apache-2.0
#include "bench/placement/states.h"

#include <numeric>

#include "absl/strings/str_cat.h"

namespace switchyard::bench {
namespace {

Held Map(const std::vector<int>& symmetry, Held held) {
  Held mapped = 0;
  for (; held != 0; held &= held - 1) {
    mapped |= Yard::Bit(symmetry[static_cast<size_t>(std::countr_zero(held))]);
  }
  return mapped;
}

// Union-find with path halving; the lowest member stands for all.
class Sets {
 public:
  explicit Sets(size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0u); }
  std::uint32_t Of(std::uint32_t x) {
    while (parent_[x] != x) x = parent_[x] = parent_[parent_[x]];
    return x;
  }
  void Join(std::uint32_t a, std::uint32_t b) {
    a = Of(a);
    b = Of(b);
    if (a != b) parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<std::uint32_t> parent_;
};

}  // namespace

Result<States> EveryState(const Yard& yard, size_t limit) {
  const auto& partitions = yard.table.partitions;
  States states;
  states.held.push_back(0);
  // Each state once: a state is extended only by partitions behind its last.
  for (size_t i = 0; i < states.held.size(); ++i) {
    const Held held = states.held[i];
    const fabric::ModuleSet taken = yard.ModulesOf(held);
    for (size_t p = held == 0 ? 0 : static_cast<size_t>(std::bit_width(held));
         p < partitions.size(); ++p) {
      if (partitions[p].modules.Overlaps(taken)) continue;
      if (states.held.size() == limit) {
        return absl::ResourceExhaustedError(
            absl::StrCat(yard.name, " has more than ", limit, " states"));
      }
      states.held.push_back(held | Yard::Bit(static_cast<int>(p)));
    }
  }
  states.class_of.reserve(states.held.size());
  for (size_t i = 0; i < states.held.size(); ++i) {
    states.class_of.emplace(states.held[i], static_cast<std::uint32_t>(i));
  }
  return states;
}

Result<States> EveryStateBySymmetry(const Yard& yard, size_t limit) {
  ASSIGN_OR_RETURN(States all, EveryState(yard, limit));
  Sets sets(all.held.size());
  for (const std::vector<int>& symmetry : Symmetries(yard)) {
    for (size_t i = 0; i < all.held.size(); ++i) {
      sets.Join(static_cast<std::uint32_t>(i), all.class_of.at(Map(symmetry, all.held[i])));
    }
  }
  States classes;
  std::vector<std::uint32_t> class_of(all.held.size());
  for (size_t i = 0; i < all.held.size(); ++i) {
    const std::uint32_t first = sets.Of(static_cast<std::uint32_t>(i));
    if (first == i) {
      class_of[i] = static_cast<std::uint32_t>(classes.held.size());
      classes.held.push_back(all.held[i]);
    }
    class_of[i] = class_of[first];  // first <= i
  }
  classes.class_of = std::move(all.class_of);
  for (auto& [held, position] : classes.class_of) position = class_of[position];
  return classes;
}

}  // namespace switchyard::bench
