// SPDX-License-Identifier: Apache-2.0
// What a decision of the planner costs. Targets (docs/performance.md): at most 1 microsecond on an
// H100 board, at most 10 on 16 GPUs with 64 partitions, and there at least 20 times faster than
// going through every subset of 8.
//   planner_bench --benchmark_repetitions=5 --benchmark_enable_random_interleaving=true
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <random>
#include <unordered_set>

#include "base/files.h"
#include "fabric/planner.h"

namespace switchyard::fabric {
namespace {

PartitionTable H100() {
  const std::string path = SWITCHYARD_SOURCE_DIR "/sim/boards/hgx-h100.json";
  return ParseBoard(ReadFile(path, 1 << 20).value(), path).value();
}

// The largest table that Fabric Manager may list: 16 GPUs, 64 partitions of 8 in the main, each
// a candidate on a free board and each overlapping nearly all others.
PartitionTable Largest() {
  std::mt19937 random(1);
  PartitionTable table;
  table.modules = ModuleSet::FirstN(kMaxModule);
  table.partitions.push_back({.id = 0, .active = false, .modules = table.modules});
  while (table.partitions.size() < size_t{kMaxPartitions}) {
    const size_t n = table.partitions.size();
    const int size = n < 48 ? 8 : n < 56 ? 12 : 4;
    ModuleSet modules;
    while (modules.size() < size) modules.Insert(static_cast<ModuleId>(random() % 16 + 1));
    table.partitions.push_back({.id = static_cast<int>(n), .active = false, .modules = modules});
  }
  return table;
}

PlanRequest Ask(const PartitionTable& table, int size) {
  PlanRequest request;
  request.table = &table;
  request.size = size;
  request.available = table.modules;
  request.usable = table.modules;
  for (ModuleId m = kMinModule; m <= kMaxModule; ++m)
    request.numa_node[static_cast<size_t>(m)] = m <= table.modules.size() / 2 ? 0 : 1;
  return request;
}

void Decide(benchmark::State& state, const PartitionTable& table, PlanRequest request) {
  if (!Choose(request)) std::abort();
  for (auto _ : state) {
    benchmark::DoNotOptimize(request);
    benchmark::DoNotOptimize(Choose(request));
  }
  benchmark::DoNotOptimize(table);
}

void BM_ChooseH100(benchmark::State& state) {
  const PartitionTable table = H100();
  Decide(state, table, Ask(table, static_cast<int>(state.range(0))));
}
BENCHMARK(BM_ChooseH100)->Arg(1)->Arg(2)->Arg(4)->Arg(8);

void BM_ChooseLargest(benchmark::State& state) {
  const PartitionTable table = Largest();
  Decide(state, table, Ask(table, 8));
}
BENCHMARK(BM_ChooseLargest);

void BM_ChooseLargestLowestId(benchmark::State& state) {
  const PartitionTable table = Largest();
  PlanRequest request = Ask(table, 8);
  request.policy = Policy::kLowestId;
  Decide(state, table, request);
}
BENCHMARK(BM_ChooseLargestLowestId);

// The other way: each of the 12870 subsets of 8 of the 16 free GPUs, looked up among the
// partitions. It does not even rank what it finds.
void BM_EnumerateSubsetsLargest(benchmark::State& state) {
  const PartitionTable table = Largest();
  std::unordered_set<std::uint32_t> partitions;
  for (const Partition& p : table.partitions) partitions.insert(p.modules.bits());
  for (auto _ : state) {
    int found = 0;
    // Gosper's walk over positions 0..15: the next larger number with as many bits.
    for (std::uint32_t subset = 0xff; subset <= 0xff00;) {
      if (partitions.contains(subset << kMinModule)) ++found;
      const std::uint32_t low = subset & -subset;
      const std::uint32_t ripple = subset + low;
      subset = ((subset ^ ripple) >> 2) / low | ripple;
    }
    if (found == 0) std::abort();
    benchmark::DoNotOptimize(found);
  }
}
BENCHMARK(BM_EnumerateSubsetsLargest);

}  // namespace
}  // namespace switchyard::fabric
