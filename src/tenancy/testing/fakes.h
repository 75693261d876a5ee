// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests: the neighbours of the core, played by values that a test sets. Header-only, without
// GoogleTest. Any thread.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "base/event.h"
#include "fabric/fabric_reader.h"
#include "tenancy/assignments.h"

namespace switchyard::tenancy::testing {

inline PciAddress Pci(absl::string_view text) { return PciAddress::Parse(text).value(); }

class FakeEvents final : public EventSink {
 public:
  void Report(const Event& event) override {
    absl::MutexLock lock(&mutex_);
    events_.push_back(event);
  }
  void Measure(const Timing& timing) override {
    absl::MutexLock lock(&mutex_);
    timings_.push_back(timing);
  }
  // Those reported since the last call.
  std::vector<Event> Take() {
    absl::MutexLock lock(&mutex_);
    return std::exchange(events_, {});
  }
  std::vector<std::string> TakeNames() {
    std::vector<std::string> names;
    for (const Event& event : Take()) names.emplace_back(event.name);
    return names;
  }
  // Those measured since the last call.
  std::vector<Timing> TakeTimings() {
    absl::MutexLock lock(&mutex_);
    return std::exchange(timings_, {});
  }

 private:
  absl::Mutex mutex_;
  std::vector<Event> events_ ABSL_GUARDED_BY(mutex_);
  std::vector<Timing> timings_ ABSL_GUARDED_BY(mutex_);
};

class FakeReader final : public fabric::FabricReader {
 public:
  Result<fabric::FabricList> ReadPartitions() override {
    if (blocked_) {
      blocked_->reached.Notify();
      blocked_->go.WaitForNotification();
    }
    return list;
  }
  Result<fabric::ModuleEntries> ReadModuleIds() override { return nvml; }

  struct Block {
    absl::Notification reached;  // a read has begun
    absl::Notification go;       // lets it go on
  };
  // The next reads wait; call before any of them.
  Block& BlockReads() {
    blocked_ = std::make_unique<Block>();
    return *blocked_;
  }

  Result<fabric::FabricList> list = absl::UnavailableError("connection refused");
  Result<fabric::ModuleEntries> nvml = fabric::ModuleEntries{};

 private:
  std::unique_ptr<Block> blocked_;
};

class FakeSource final : public AssignmentSource {
 public:
  Result<AssignmentView> Read() override {
    ++reads;
    if (while_reading) while_reading();
    if (!answer.ok()) return answer.status();
    return AssignmentView{*answer, whole};
  }
  Result<bool> StillHas(const Owner& owner, std::span<const PciAddress> devices) override {
    if (!answer.ok()) return answer.status();
    for (const PciAddress& address : devices) {
      const auto found = answer->find(address);
      if (found != answer->end() && found->second == owner) return true;
    }
    return false;
  }
  void Assign(const PciAddress& address, const std::string& pod) {
    (*answer)[address] = {"pod", pod};
  }

  Result<Assignments> answer = Assignments{};
  bool whole = true;
  int reads = 0;
  std::function<void()> while_reading;
};

struct FakePartition {
  int id = 0;
  std::vector<unsigned> modules;
  bool active = false;
};

// As FM lists an H100 board: physical ids are module ids, no addresses.
inline fabric::FabricList ListOf(const std::vector<FakePartition>& partitions) {
  fabric::FabricList list;
  for (const FakePartition& p : partitions) {
    fabric::FabricPartition partition{p.id, p.active, {}};
    for (const unsigned module : p.modules) {
      fabric::FabricGpu gpu;
      gpu.physical_id = module;
      partition.gpus.push_back(gpu);
    }
    list.partitions.push_back(partition);
  }
  list.max_partitions = static_cast<int>(list.partitions.size());
  return list;
}

// The published table of HGX H100.
inline fabric::FabricList H100(const std::vector<int>& active = {}) {
  std::vector<FakePartition> partitions = {{0, {1, 2, 3, 4, 5, 6, 7, 8}},
                                           {1, {1, 2, 3, 4}},
                                           {2, {5, 6, 7, 8}},
                                           {3, {1, 3}},
                                           {4, {2, 4}},
                                           {5, {5, 7}},
                                           {6, {6, 8}}};
  for (unsigned m = 1; m <= 8; ++m) partitions.push_back({static_cast<int>(m) + 6, {m}});
  for (const int id : active) partitions[static_cast<size_t>(id)].active = true;
  return ListOf(partitions);
}

}  // namespace switchyard::tenancy::testing
