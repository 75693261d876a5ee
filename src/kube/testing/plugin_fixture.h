// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests: a node with GPUs in a sysfs tree, the simulated kubelet in a folder of its own, and
// the device plugins between them. Time stands still unless a test moves it; Step is driven by hand
// unless a test calls plugins->Start().

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "k8s_deviceplugin_v1beta1.grpc.pb.h"
#include "kube/catalogue.h"
#include "kube/device_plugins.h"
#include "kube/testing/devices.h"
#include "pci/testing/tree.h"
#include "sim/kubelet/kubelet.h"
#include "tenancy/testing/fakes.h"

namespace switchyard::kube::testing {

inline constexpr char kH100[] = "nvidia.com/GH100_H100_SXM5_80GB";
// Real time: only how long a failing test takes.
inline constexpr absl::Duration kPatience = absl::Seconds(30);

class PluginFixture : public ::testing::Test {
 protected:
  PluginFixture() {
    std::string folder = "/tmp/kube-XXXXXX";
    folder_ = ::mkdtemp(folder.data());
    UseKubevirt();
  }
  ~PluginFixture() override {
    plugins_.reset();
    kubelet_.reset();
    std::filesystem::remove_all(folder_);
  }

  void UseKubevirt(tenancy::FabricMode mode = tenancy::FabricMode::kOff) {
    contract_ = MakeKubevirtContract({}, TestPciIds(), mode).value();
  }
  void UseKata() {
    contract_ = MakeKataContract({}, TestPciIds(), tenancy::FabricMode::kAdvise).value();
  }

  // Call after the tree and the contract are as the test wants them.
  void Begin(tenancy::FabricMode mode = tenancy::FabricMode::kOff,
             sim::KubeletOptions kubelet = {}) {
    kubelet.device_plugins_folder = folder_ + "/p";
    kubelet.pod_resources_folder = folder_ + "/r";
    kubelet_ = std::make_unique<sim::Kubelet>(kubelet);
    tenancy::Options options{tree_.root(), mode, fabric::Policy::kPack, {folder_ + "/map.json"}};
    tenancies_ = std::make_unique<tenancy::Tenancies>(
        std::move(options), tenancy::Parts{clock(), &events_, nullptr, &reader_});
    catalogue_ = std::make_unique<Catalogue>(*contract_, nullptr, events_);
    plugin_options_.folder = folder_ + "/p";
    plugins_ = std::make_unique<DevicePlugins>(
        plugin_options_, DevicePluginsParts{clock(), &events_, contract_.get(), tenancies_.get(),
                                            [this] { ++after_allocate_; }});
    Scan();
  }
  // What the agent does when something may have changed.
  void Scan() {
    auto inventory = std::make_shared<const pci::Inventory>(pci::Scan(tree_.root()).value());
    tenancies_->SetInventory(inventory);
    plugins_->Publish(catalogue_->Update(*inventory));
  }
  virtual Clock* clock() { return &sim_clock_; }

  // Drives Step until `done`; false after kPatience of real time.
  template <typename Done>
  bool StepUntil(Done done) {
    const absl::Duration end = real_clock_.Monotonic() + kPatience;
    while (!done()) {
      if (real_clock_.Monotonic() > end) return false;
      (void)plugins_->Step();
      std::this_thread::yield();
    }
    return true;
  }
  [[nodiscard]] bool Streaming() const {
    const auto all = plugins_->Status();
    return !all.empty() &&
           std::all_of(all.begin(), all.end(), [](const auto& r) { return r.streaming; });
  }
  bool Settle() {
    return StepUntil([&] { return Streaming(); }) &&
           kubelet_->WaitFor(
               [&] {
                 for (const auto& r : plugins_->Status()) {
                   const auto resources = kubelet_->Resources();
                   const auto at = resources.find(r.resource);
                   if (at == resources.end() || at->second.allocatable != r.healthy) return false;
                 }
                 return true;
               },
               kPatience);
  }
  [[nodiscard]] std::string Socket() const { return plugins_->Status().at(0).socket; }

  // A client of our own, as kubelet would call.
  [[nodiscard]] std::unique_ptr<v1beta1::DevicePlugin::Stub> Dial() const {
    return v1beta1::DevicePlugin::NewStub(grpc::CreateChannel(
        absl::StrCat("unix:", folder_, "/p/", Socket()), grpc::InsecureChannelCredentials()));
  }
  static sim::PodSpec Pod(const std::string& name, const std::string& resource, int count) {
    return {"default", name, {{"main", false, false, {{resource, count}}}}, std::nullopt};
  }
  // Those reported since the last call.
  std::vector<std::string> EventNames() { return events_.TakeNames(); }

  std::string folder_;
  DevicePluginsOptions plugin_options_;
  RealClock real_clock_;
  SimClock sim_clock_;
  tenancy::testing::FakeEvents events_;
  tenancy::testing::FakeReader reader_;
  pci::testing::SysfsTree tree_;
  std::unique_ptr<Contract> contract_;
  std::unique_ptr<sim::Kubelet> kubelet_;
  std::unique_ptr<tenancy::Tenancies> tenancies_;
  std::unique_ptr<Catalogue> catalogue_;
  std::unique_ptr<DevicePlugins> plugins_;
  std::atomic<int> after_allocate_ = 0;
};

}  // namespace switchyard::kube::testing
