// SPDX-License-Identifier: Apache-2.0
#pragma once

// A started kubelet in a folder of its own, its clock in the test's hands, and one plugin.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "sim/kubelet/fake_plugin_for_test.h"
#include "sim/kubelet/kubelet.h"

namespace switchyard::sim {

class KubeletFixture : public ::testing::Test {
 protected:
  static constexpr absl::Duration kPatience = absl::Seconds(30);  // for what will come

  KubeletFixture() {
    char name[] = "/tmp/sim-kubelet-XXXXXX";
    folder_ = ::mkdtemp(name);
    Make({});
  }
  ~KubeletFixture() override {
    kubelet_.reset();
    std::filesystem::remove_all(folder_);
  }

  // Another kubelet, started, with these options; folders and clock are filled in.
  void Make(KubeletOptions options, bool real_time = false) {
    kubelet_.reset();
    options.device_plugins_folder = plugins();
    options.pod_resources_folder = folder_ + "/pr";
    options.clock = real_time ? nullptr : &clock_;
    kubelet_ = std::make_unique<Kubelet>(options);
    const Status status = kubelet_->Start();
    ASSERT_TRUE(status.ok()) << status;
  }
  std::string plugins() const { return folder_ + "/dp"; }

  std::unique_ptr<FakePlugin> MakePlugin(const std::string& socket,
                                         FakePlugin::Behaviour behaviour = {}) {
    return std::make_unique<FakePlugin>(plugins(), socket, std::move(behaviour));
  }
  // A registered plugin whose devices have arrived.
  std::unique_ptr<FakePlugin> MakeRegistered(const std::vector<std::string>& ids,
                                             FakePlugin::Behaviour behaviour = {}) {
    auto plugin = MakePlugin("p.sock", std::move(behaviour));
    plugin->Send(HealthyDevices(ids));
    const Status status = plugin->Register("v/gpu");
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_TRUE(WaitAllocatable(static_cast<int>(ids.size())));
    return plugin;
  }
  ResourceReport Gpu() const {
    const auto resources = kubelet_->Resources();
    const auto found = resources.find("v/gpu");
    return found == resources.end() ? ResourceReport{.capacity = -1} : found->second;
  }
  bool WaitAllocatable(int count) const {
    return kubelet_->WaitFor([&] { return Gpu().allocatable == count && Gpu().connected; },
                             kPatience);
  }
  bool WaitDisconnected() const {
    return kubelet_->WaitFor([&] { return !Gpu().connected; }, kPatience);
  }
  PodStatus AddPod(const std::string& name, int gpus) {
    PodSpec spec;
    spec.name = name;
    spec.containers = {{.name = "main", .resources = {{"v/gpu", gpus}}}};
    return kubelet_->AddPod(spec);
  }

  std::string folder_;
  SimClock clock_;
  std::unique_ptr<Kubelet> kubelet_;
};

}  // namespace switchyard::sim
