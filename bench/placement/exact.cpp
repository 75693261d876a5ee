// SPDX-License-Identifier: Apache-2.0
#include "bench/placement/exact.h"

#include "absl/strings/str_cat.h"
#include "bench/placement/asker.h"

namespace switchyard::bench {
namespace {

Result<std::optional<double>> Value(const std::optional<Chain>& chain, const Demand& demand,
                                    Measure measure, Chain::Rule rule) {
  if (!chain) return std::nullopt;
  ASSIGN_OR_RETURN(const Chain::Acceptance found, chain->Solve(demand, measure, rule, kTolerance));
  return found.value();
}

}  // namespace

Exact::Exact(const Yard& yard, const std::vector<int>& sizes) {
  const Result<States> classes = EveryStateBySymmetry(yard, kMostStatesBySymmetry);
  if (!classes.ok()) {
    words_ = std::string(classes.status().message());
    return;
  }
  words_ =
      absl::StrCat(classes->class_of.size(), " states, ", classes->held.size(), " up to symmetry");
  best_.emplace(*classes, sizes,
                [&](Held held, int size) { return yard.FreePartitions(held, size); });

  const Result<States> states = EveryState(yard, kMostStates);
  if (!states.ok()) return;
  Asker asker(yard);
  const auto by = [&](fabric::Policy policy) {
    return [&asker, policy](Held held, int size) {
      const auto chosen = asker.Choose(policy, held, held, size);
      return chosen ? std::vector<int>{*chosen} : std::vector<int>{};
    };
  };
  pack_.emplace(*states, sizes, by(fabric::Policy::kPack));
  lowest_id_.emplace(*states, sizes, by(fabric::Policy::kLowestId));
  random_.emplace(*states, sizes,
                  [&](Held held, int size) { return asker.Candidates(held, held, size); });
}

Result<std::optional<double>> Exact::Optimum(const Demand& demand, Measure measure) const {
  return Value(best_, demand, measure, Chain::Rule::kBest);
}

Result<std::optional<double>> Exact::Of(Allocator allocator, const Demand& demand,
                                        Measure measure) const {
  switch (allocator) {
    case Allocator::kPack:
      return Value(pack_, demand, measure, Chain::Rule::kBest);
    case Allocator::kLowestId:
      return Value(lowest_id_, demand, measure, Chain::Rule::kBest);
    case Allocator::kRandom:
      return Value(random_, demand, measure, Chain::Rule::kAny);
    case Allocator::kCountOnly:
    case Allocator::kCountOnlyKeep:
      break;
  }
  return std::nullopt;
}

}  // namespace switchyard::bench
