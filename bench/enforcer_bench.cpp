// SPDX-License-Identifier: Apache-2.0
// What a pass of the reconciler costs on the largest node: 16 GPUs, 64 partitions, a tenancy for
// each GPU. Target (docs/performance.md): at most 1 ms of CPU. Fabric Manager, journal, kubelet and
// processes are values in memory; the look at the processes of this machine is measured apart.
//   enforcer_bench --benchmark_repetitions=5 --benchmark_report_aggregates_only=true
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <random>

#include "pci/holders.h"
#include "tenancy/testing/enforcer_fixture.h"

namespace switchyard::tenancy::testing {
namespace {

constexpr int kGpus = fabric::kMaxModule;

// Module m's GPU; At() of the fixture has room for 15.
PciAddress Gpu(int module) {
  PciAddress address;
  address.bus = static_cast<std::uint8_t>(module * 8);
  return address;
}

fabric::FabricPartition PartitionOf(int id, fabric::ModuleSet modules) {
  fabric::FabricPartition partition{id, false, {}};
  for (const int module : modules.ToVector()) {
    partition.gpus.emplace_back();
    partition.gpus.back().physical_id = static_cast<unsigned>(module);
  }
  return partition;
}

// Each GPU alone, and any sets of 2 to 16.
fabric::FabricList LargestList() {
  std::mt19937 random(1);
  fabric::FabricList list;
  list.max_partitions = fabric::kMaxPartitions;
  for (int m = 1; m <= kGpus; ++m) list.partitions.push_back(PartitionOf(m, {m}));
  while (list.partitions.size() < size_t{fabric::kMaxPartitions}) {
    const int id = static_cast<int>(list.partitions.size()) + 1;
    const int size = id < 40 ? 2 : id < 52 ? 4 : id < 60 ? 8 : 16;
    fabric::ModuleSet modules;
    while (modules.size() < size) modules.Insert(static_cast<int>(random() % kGpus) + 1);
    list.partitions.push_back(PartitionOf(id, modules));
  }
  return list;
}

class Node {
 public:
  Node() : holders_(clock_) {
    fabric_.list = LargestList();
    EnforcerOptions options;
    options.boot = {1, 1};
    EnforcerParts parts;
    parts.clock = &clock_;
    parts.events = &events_;
    parts.journal = &journal_;
    parts.fabric = &fabric_;
    parts.holders = &holders_;
    parts.assignments = &source_;
    enforcer_.emplace(options, std::move(parts));
    if (!enforcer_->Load().ok()) std::abort();
    Board board;
    for (int m = 1; m <= kGpus; ++m)
      board.devices.push_back({Gpu(m), fabric::ModuleSet{m}, true, DeviceOf(m)});
    enforcer_->ObserveBoard(std::move(board), std::make_shared<const fabric::ModuleMap>());
    Probe();
    for (int m = 1; m <= kGpus; ++m) {
      TenancyRequest request;
      request.devices.push_back(DeviceOf(m));
      if (!enforcer_->Acquire(request).ok()) std::abort();
      source_.Assign(Gpu(m), absl::StrCat("default/pod-", m));
      holders_.held.insert(Gpu(m));
    }
    Turn();
  }

  void Probe() {
    const std::uint64_t generation = enforcer_->FabricGeneration();
    enforcer_->ObserveFabric(fabric_.ReadPartitions(), generation);
  }
  // All of what the agent does of itself: the list, kubelet's list, and the pass.
  void Turn() {
    clock_.Advance(absl::Milliseconds(1));
    Probe();
    const absl::Duration started = clock_.Monotonic();
    enforcer_->ObserveAssignments(*source_.Read(), started);
    enforcer_->Reconcile();
  }
  void Pass() {
    clock_.Advance(absl::Milliseconds(1));
    enforcer_->Reconcile();
  }
  // Every pod has gone, and nothing may be released yet.
  void AllGone() {
    holders_.held.clear();
    source_.answer->clear();
    Turn();
  }

 private:
  static TenancyDevice DeviceOf(int module) {
    TenancyDevice device;
    device.address = Gpu(module);
    device.iommu_group = 100 + module;
    device.functions.push_back({Gpu(module), "", std::nullopt});
    return device;
  }

  SimClock clock_;
  FakeEvents events_;
  FakeSource source_;
  ModelFabric fabric_;
  ModelJournal journal_;
  ModelHolders holders_;
  std::optional<Enforcer> enforcer_;
};

void BM_PassAllInUse(benchmark::State& state) {
  Node node;
  for (auto _ : state) node.Pass();
}
BENCHMARK(BM_PassAllInUse)->Unit(benchmark::kMicrosecond);

void BM_TurnAllInUse(benchmark::State& state) {
  Node node;
  for (auto _ : state) node.Turn();
}
BENCHMARK(BM_TurnAllInUse)->Unit(benchmark::kMicrosecond);

void BM_PassAllUnused(benchmark::State& state) {
  Node node;
  node.AllGone();
  // Far less than the grace, however often it runs.
  for (auto _ : state) node.Pass();
}
BENCHMARK(BM_PassAllUnused)->Unit(benchmark::kMicrosecond)->Iterations(2000);

// Every file of every process of this machine, for 16 devices that nobody has.
void BM_LookAtProcesses(benchmark::State& state) {
  std::vector<pci::DeviceNodes> devices;
  for (int m = 1; m <= kGpus; ++m) devices.push_back({Gpu(m), {static_cast<dev_t>(0xfff00 + m)}});
  for (auto _ : state) {
    const auto holders = pci::FindHolders(HostRoot("/"), devices);
    if (!holders.ok()) state.SkipWithError(std::string(holders.status().message()).c_str());
    benchmark::DoNotOptimize(holders);
  }
  double files = 0;
  double processes = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    ++processes;
    std::error_code gone;
    for (std::filesystem::directory_iterator fd(entry.path() / "fd", gone), end; fd != end;
         fd.increment(gone))
      ++files;
  }
  state.counters["processes"] = processes;
  state.counters["files"] = files;
}
BENCHMARK(BM_LookAtProcesses)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace switchyard::tenancy::testing
