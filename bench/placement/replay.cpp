// SPDX-License-Identifier: Apache-2.0
#include "bench/placement/replay.h"

#include <cmath>
#include <queue>
#include <random>

#include "bench/placement/asker.h"

namespace switchyard::bench {
namespace {

// In mean holding times; what a run began with is then forgotten (e^-20 of it is left).
constexpr double kWarm = 20;

// std's distributions differ between libraries; these don't.
double Uniform(std::mt19937_64& random) {
  return static_cast<double>(random() >> 11) * 0x1p-53;  // [0, 1)
}
double Exponential(std::mt19937_64& random) { return -std::log1p(-Uniform(random)); }

struct Pod {
  double end = 0;
  int partition = -1;  // -1: GPUs that are none
  fabric::ModuleSet modules;
  friend bool operator>(const Pod& a, const Pod& b) { return a.end > b.end; }
};

class Run {
 public:
  Run(const Yard& yard, Allocator allocator, std::uint64_t seed, double linger)
      : yard_(yard), asker_(yard), allocator_(allocator), random_(~seed), linger_(linger) {}

  // A pod comes; later ones come later. True if it gets a partition.
  bool Arrive(double now, int size, double holding) {
    while (!pods_.empty() && pods_.top().end <= now) {
      Leave(pods_.top());
      pods_.pop();
    }
    for (Held idle = active_ & ~held_; idle != 0; idle &= idle - 1) {
      const int p = std::countr_zero(idle);
      if (active_until_[static_cast<size_t>(p)] <= now) active_ &= ~Yard::Bit(p);
    }
    Pod pod = Place(size);
    if (pod.modules.empty()) return false;
    pod.end = now + holding;
    Enter(pod);
    return pod.partition >= 0;
  }

 private:
  Pod Place(int size) {
    switch (allocator_) {
      case Allocator::kPack:
        return OfPartition(asker_.Choose(fabric::Policy::kPack, held_, active_, size).value_or(-1));
      case Allocator::kLowestId:
        return OfPartition(
            asker_.Choose(fabric::Policy::kLowestId, held_, active_, size).value_or(-1));
      case Allocator::kRandom: {
        const std::vector<int> all = asker_.Candidates(held_, active_, size);
        return all.empty() ? Pod{} : OfPartition(all[random_() % all.size()]);
      }
      case Allocator::kCountOnly:
      case Allocator::kCountOnlyKeep:
        return Count(size);
    }
    return {};
  }

  [[nodiscard]] Pod OfPartition(int partition) const {
    if (partition < 0) return {};
    return {0, partition, yard_.table.partitions[static_cast<size_t>(partition)].modules};
  }

  [[nodiscard]] Pod Count(int size) const {
    Pod pod;
    for (const fabric::ModuleId m : yard_.address_order) {
      if (pod.modules.size() < size && !taken_.Contains(m)) pod.modules.Insert(m);
    }
    if (pod.modules.size() < size) return {};
    for (size_t i = 0; i < yard_.table.partitions.size(); ++i) {
      if (yard_.table.partitions[i].modules == pod.modules) pod.partition = static_cast<int>(i);
    }
    if (pod.partition < 0 && allocator_ == Allocator::kCountOnly) return {};
    return pod;
  }

  void Enter(const Pod& pod) {
    taken_ = taken_ | pod.modules;
    if (pod.partition >= 0) held_ |= Yard::Bit(pod.partition);
    // What is in the way is deactivated first; nobody holds it.
    for (Held idle = active_ & ~held_; idle != 0; idle &= idle - 1) {
      const int p = std::countr_zero(idle);
      if (yard_.table.partitions[static_cast<size_t>(p)].modules.Overlaps(pod.modules)) {
        active_ &= ~Yard::Bit(p);
      }
    }
    active_ |= held_;
    pods_.push(pod);
  }

  void Leave(const Pod& pod) {
    taken_ = taken_ - pod.modules;
    if (pod.partition < 0) return;
    held_ &= ~Yard::Bit(pod.partition);
    active_until_[static_cast<size_t>(pod.partition)] = pod.end + linger_;
  }

  const Yard& yard_;
  Asker asker_;
  const Allocator allocator_;
  std::mt19937_64 random_;  // not the one that makes the pods
  const double linger_;
  Held held_ = 0;
  Held active_ = 0;
  fabric::ModuleSet taken_;
  std::array<double, fabric::kMaxPartitions> active_until_{};
  std::priority_queue<Pod, std::vector<Pod>, std::greater<>> pods_;
};

int SizeOf(const Mix& mix, double uniform) {
  for (const Share& s : mix) {
    if (uniform < s.share) return s.size;
    uniform -= s.share;
  }
  return mix.back().size;  // shares that sum to a little less than 1
}

double OneRun(const Yard& yard, const Demand& demand, Allocator allocator, std::uint64_t seed,
              const ReplayOptions& options) {
  std::mt19937_64 random(seed);
  Run run(yard, allocator, seed, options.linger);
  double accepted = 0;
  double asked = 0;
  double now = 0;
  for (std::int64_t counted = 0; counted < options.pods_per_run;) {
    now += Exponential(random) / demand.arrivals;
    const int size = SizeOf(demand.mix, Uniform(random));
    const bool placed = run.Arrive(now, size, Exponential(random));
    if (now < kWarm) continue;
    ++counted;
    const double weight = WeightOf(options.measure, size);
    asked += weight;
    accepted += placed ? weight : 0;
  }
  return accepted / asked;
}

}  // namespace

absl::string_view AllocatorName(Allocator allocator) {
  switch (allocator) {
    case Allocator::kPack:
      return "pack";
    case Allocator::kLowestId:
      return "lowest-id";
    case Allocator::kRandom:
      return "random";
    case Allocator::kCountOnly:
      return "count-only";
    case Allocator::kCountOnlyKeep:
      return "count-only, kept";
  }
  return "?";
}

Rate RateOf(const std::vector<double>& runs) {
  const double n = static_cast<double>(runs.size());
  Rate rate;
  for (const double r : runs) rate.mean += r / n;
  double squares = 0;
  for (const double r : runs) squares += (r - rate.mean) * (r - rate.mean);
  rate.error = runs.size() > 1 ? std::sqrt(squares / (n - 1) / n) : 0;
  return rate;
}

std::vector<double> Replay(std::span<const Yard> yards, const Demand& demand, Allocator allocator,
                           const ReplayOptions& options) {
  std::vector<double> runs;
  for (size_t r = 0; r < yards.size(); ++r) {
    // Runs of neighbouring seeds have no pods in common.
    const std::uint64_t seed = options.seed * 1000003 + r;
    runs.push_back(OneRun(yards[r], demand, allocator, seed, options));
  }
  return runs;
}

}  // namespace switchyard::bench
