// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests: the Enforcer over an H100 board of values that a test sets. Single-threaded; waiting
// for a holder moves the clock. GoogleTest fixture.

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "tenancy/enforcer.h"
#include "tenancy/testing/fakes.h"

namespace switchyard::tenancy::testing {

// Module m is 0000:m0:00.0 (hexadecimal), its group 100 + m.
inline PciAddress At(int module) {
  PciAddress address;
  address.bus = static_cast<std::uint8_t>(module * 16);
  return address;
}

inline TenancyDevice DeviceAt(int module) {
  TenancyDevice device;
  device.address = At(module);
  device.iommu_group = 100 + module;
  device.functions.push_back({At(module), "", std::nullopt});
  return device;
}

// Fabric Manager: does what it is told, unless `fail` says otherwise for the next changes.
class ModelFabric : public fabric::FabricControl {
 public:
  struct Failure {
    Status status;
    bool happens = false;  // all the same
  };

  Result<fabric::FabricList> ReadPartitions() override { return down.ok() ? Answer() : down; }
  Result<fabric::ModuleEntries> ReadModuleIds() override { return fabric::ModuleEntries{}; }
  Result<fabric::FabricList> Activate(int id, absl::Duration within) override {
    return Change(id, true, within);
  }
  Result<fabric::FabricList> Deactivate(int id, absl::Duration within) override {
    return Change(id, false, within);
  }
  Result<fabric::FabricList> SetActivated(std::span<const int> ids) override {
    calls.push_back("set");
    if (const Status status = Next(); !status.ok()) return status;
    sent.emplace(ids.begin(), ids.end());
    for (auto& p : list.partitions) p.active = sent->contains(p.id);
    down = OkStatus();
    return list;
  }

  std::vector<int> Active() const {
    std::vector<int> ids;
    for (const auto& p : list.partitions) {
      if (p.active) ids.push_back(p.id);
    }
    return ids;
  }
  void SetActive(int id, bool active) { Find(id)->active = active; }

  fabric::FabricList list = H100();
  Status down;                   // of every call
  std::deque<Failure> failures;  // of the next changes
  std::vector<std::string> calls;
  std::optional<std::set<int>> sent;
  std::vector<absl::Duration> limits;  // of each change
  std::function<void()> before_change;

 private:
  Result<fabric::FabricList> Answer() const { return list; }
  Status Next() {
    if (!down.ok() && failures.empty()) return down;
    if (failures.empty()) return OkStatus();
    const Failure next = failures.front();
    failures.pop_front();
    happens_ = next.happens;
    return next.status;
  }
  fabric::FabricPartition* Find(int id) {
    for (auto& p : list.partitions) {
      if (p.id == id) return &p;
    }
    return nullptr;
  }
  Result<fabric::FabricList> Change(int id, bool active, absl::Duration at_most) {
    limits.push_back(at_most);
    if (before_change) before_change();
    calls.push_back((active ? "+" : "-") + std::to_string(id));
    happens_ = true;
    const Status status = Next();
    if (happens_ && Find(id) != nullptr) Find(id)->active = active;
    if (!status.ok()) return status;
    return list;
  }
  bool happens_ = true;
};

class ModelJournal final : public Journal {
 public:
  Result<Content> Load() override {
    if (!load.ok()) return load;
    Content content;
    for (const auto& [id, record] : records) content.records.push_back(record);
    content.foreign = foreign;
    content.foreign_boot = foreign_boot;
    content.draining = draining;
    content.lost = lost;
    return content;
  }
  Status Write(const TenancyRecord& record) override {
    if (before_write) before_write(record);
    if (!writes.ok()) return writes;
    records[record.id] = record;
    return OkStatus();
  }
  Status Erase(std::uint64_t id) override {
    if (!writes.ok()) return writes;
    records.erase(id);
    return OkStatus();
  }
  Status WriteForeign(std::span<const fabric::ModuleSet> sets, const BootId& boot) override {
    if (!writes.ok()) return writes;
    foreign.assign(sets.begin(), sets.end());
    foreign_boot = boot;
    return OkStatus();
  }
  Status WriteDraining(bool on) override {
    if (!writes.ok()) return writes;
    draining = on;
    return OkStatus();
  }

  std::map<std::uint64_t, TenancyRecord> records;
  std::vector<fabric::ModuleSet> foreign;
  BootId foreign_boot;
  bool draining = false;
  std::vector<std::string> lost;
  Status load;
  Status writes;
  std::function<void(const TenancyRecord&)> before_write;
};

class ModelHolders final : public HolderSource {
 public:
  explicit ModelHolders(SimClock& clock) : clock_(clock) {}
  Result<pci::Holders> Look(std::span<const PciAddress> devices) override {
    ++looks;
    if (!status.ok()) return status;
    pci::Holders holders;
    for (const PciAddress& address : devices) {
      if (held.contains(address))
        holders.of[address].push_back(
            {4711, "qemu-system-x86", "/kubepods/pod1", "/dev/vfio/1", ""});
    }
    return holders;
  }
  Result<bool> IsBusy(const PciAddress& device) override {
    return held.contains(device) || busy.contains(device);
  }
  void AwaitChange(const pci::Holders& /*holders*/, absl::Duration at_most) override {
    clock_.Advance(at_most + absl::Milliseconds(1));  // a real wait ends a little late
    if (while_waiting) while_waiting();
  }

  std::set<PciAddress> held;
  std::set<PciAddress> busy;  // by the kernel's word only
  Status status;
  int looks = 0;
  std::function<void()> while_waiting;

 private:
  SimClock& clock_;
};

class EnforcerFixture : public ::testing::Test {
 protected:
  EnforcerFixture() : holders_(clock_) { options_.boot = {1, 1}; }

  // A new process; what is in the models stays.
  void Start() {
    enforcer_.reset();
    EnforcerParts parts;
    parts.clock = &clock_;
    parts.events = &events_;
    parts.journal = &journal_;
    parts.fabric = &fabric_;
    parts.holders = &holders_;
    parts.assignments = &source_;
    parts.who = [](absl::string_view cgroup) {
      return cgroup == "/kubepods/pod1" ? std::string("pod 1") : std::string();
    };
    parts.restart_is_warm = [this] { return restart_is_warm_; };
    enforcer_ = std::make_unique<Enforcer>(options_, std::move(parts));
    loaded_ = enforcer_->Load();
    Board board;
    for (int m = 1; m <= 8; ++m)
      board.devices.push_back({At(m), fabric::ModuleSet{m}, true, DeviceAt(m)});
    enforcer_->ObserveBoard(std::move(board), std::make_shared<const fabric::ModuleMap>());
    Probe();
  }
  void Probe() {
    const std::uint64_t generation = enforcer_->FabricGeneration();
    enforcer_->ObserveFabric(fabric_.ReadPartitions(), generation);
  }
  void List() {
    const absl::Duration started = clock_.Monotonic();
    if (const auto view = source_.Read(); view.ok()) enforcer_->ObserveAssignments(*view, started);
  }
  // What the agent does every few seconds.
  void Turn(absl::Duration later = absl::Seconds(10)) {
    clock_.Advance(later);
    Probe();
    List();
    enforcer_->Reconcile();
  }
  void Turns(int count) {
    for (int i = 0; i < count; ++i) Turn();
  }
  static TenancyRequest For(const std::vector<int>& modules) {
    TenancyRequest request;
    for (const int m : modules) request.devices.push_back(DeviceAt(m));
    return request;
  }
  Result<Acquired> Acquire(const std::vector<int>& modules) {
    return enforcer_->Acquire(For(modules));
  }
  void Assign(const std::vector<int>& modules, const std::string& pod) {
    for (const int m : modules) source_.Assign(At(m), pod);
  }
  void Unassign(const std::vector<int>& modules) {
    for (const int m : modules) source_.answer->erase(At(m));
  }
  void Hold(const std::vector<int>& modules) {
    for (const int m : modules) holders_.held.insert(At(m));
  }
  // The states in the journal, by partition.
  std::map<int, TenancyState> States() const {
    std::map<int, TenancyState> states;
    for (const auto& [id, record] : journal_.records) states[record.partition] = record.state;
    return states;
  }

  SimClock clock_;
  FakeEvents events_;
  FakeSource source_;
  ModelFabric fabric_;
  ModelJournal journal_;
  ModelHolders holders_;
  EnforcerOptions options_;
  bool restart_is_warm_ = false;
  std::unique_ptr<Enforcer> enforcer_;
  Status loaded_;
};

}  // namespace switchyard::tenancy::testing
