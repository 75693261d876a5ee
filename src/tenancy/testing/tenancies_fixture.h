// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests: the core over an 8-GPU board on disk and the fakes of fakes.h. GoogleTest fixture.

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "pci/testing/tree.h"
#include "tenancy/tenancies.h"
#include "tenancy/testing/fakes.h"

namespace switchyard::tenancy::testing {

using Names = std::vector<std::string>;
using Addresses = std::vector<PciAddress>;

// One real board: module of the GPUs in bus order. Not the identity: module ids are no indices.
inline constexpr std::array<const char*, 8> kBus = {"0000:19:00.0", "0000:3b:00.0", "0000:4c:00.0",
                                                    "0000:5d:00.0", "0000:9b:00.0", "0000:bb:00.0",
                                                    "0000:cb:00.0", "0000:db:00.0"};
inline constexpr std::array<int, 8> kModule = {2, 4, 1, 3, 7, 5, 6, 8};

inline PciAddress Gpu(int module) {
  for (size_t i = 0; i < kBus.size(); ++i) {
    if (kModule[i] == module) return Pci(kBus[i]);
  }
  return {};
}

class TenanciesFixture : public ::testing::Test {
 protected:
  TenanciesFixture() {
    for (size_t i = 0; i < kBus.size(); ++i) {
      tree_.AddGpu(kBus[i], 100 + static_cast<int>(i), i < 4 ? 0 : 1);
      reader_.nvml->emplace(Pci(kBus[i]), kModule[i]);
    }
    reader_.list = H100();
  }
  ~TenanciesFixture() override {
    if (!state_folder_.empty()) std::filesystem::remove_all(state_folder_);
  }

  void Start(FabricMode mode = FabricMode::kAdvise) {
    tenancies_ = std::make_unique<Tenancies>(Options{tree_.root(), mode, fabric::Policy::kPack, {}},
                                             Parts{&clock_, &events_, store_.get(), &reader_});
    Scan();
    tenancies_->RefreshFabric();
    (void)events_.Take();
  }
  void WithStore() {
    char name[] = "/tmp/tenancy-XXXXXX";
    state_folder_ = ::mkdtemp(name);
    store_ = store::Store::Open(state_folder_, store::Store::Mode::kReadWrite).value().store;
  }
  void Scan() {
    tenancies_->SetInventory(
        std::make_shared<const pci::Inventory>(pci::Scan(tree_.root()).value()));
  }

  static Addresses Gpus(const std::vector<int>& modules) {
    Addresses addresses;
    for (const int m : modules) addresses.push_back(Gpu(m));
    return addresses;
  }
  Preference Prefer(const std::vector<int>& available, int size,
                    const std::vector<int>& must = {}) {
    return tenancies_->Prefer(Gpus(available), Gpus(must), size);
  }
  Result<Grant> Acquire(const std::vector<int>& modules) {
    return tenancies_->Acquire(Gpus(modules));
  }
  bool Refresh() { return tenancies_->RefreshAssignments(source_); }
  fabric::ModuleSet Busy() { return tenancies_->View().busy; }

  pci::testing::SysfsTree tree_;
  SimClock clock_;
  FakeEvents events_;
  FakeReader reader_;
  FakeSource source_;
  std::string state_folder_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<Tenancies> tenancies_;
};

}  // namespace switchyard::tenancy::testing
