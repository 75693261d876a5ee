// SPDX-License-Identifier: Apache-2.0
#pragma once

// A device manager with a scripted plugin of four devices, its checkpoint in a folder of its own.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "sim/kubelet/device_manager.h"

namespace switchyard::sim {

class ScriptedPlugin final : public PluginEndpoint {
 public:
  Result<std::vector<std::string>> GetPreferredAllocation(
      const PreferredRequest& request) override {
    if (on_prefer) return on_prefer(request);
    return std::vector<std::string>();
  }
  Result<std::optional<AllocateAnswer>> Allocate(const std::vector<std::string>& ids) override {
    if (on_allocate) return on_allocate(ids);
    return std::optional<AllocateAnswer>(AllocateAnswer());
  }

  Status PreStartContainer(const std::vector<std::string>& ids) override {
    return on_pre_start ? on_pre_start(ids) : OkStatus();
  }

  std::function<Result<std::vector<std::string>>(const PreferredRequest&)> on_prefer;
  std::function<Status(const std::vector<std::string>&)> on_pre_start;
  std::function<Result<std::optional<AllocateAnswer>>(const std::vector<std::string>&)> on_allocate;
};

struct TempFolder {
  TempFolder() {
    std::string name = "/tmp/sim-manager-XXXXXX";
    path = ::mkdtemp(name.data());
  }
  ~TempFolder() { std::filesystem::remove_all(path); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  std::string path;
};

inline ContainerSpec Container(const std::string& name, int gpus) {
  return {.name = name, .init = false, .restartable = false, .resources = {{"v/gpu", gpus}}};
}

class DeviceManagerTest : public ::testing::Test {
 protected:
  static constexpr PluginOptions kPreferred = {.preferred_available = true};
  static constexpr PluginOptions kPreStart = {.preferred_available = true,
                                              .pre_start_required = true};

  DeviceManagerTest() {
    Connect("v/gpu", plugin_, kPreferred);
    SendDevices({"a", "b", "c", "d"});
  }
  // A plugin registers, on a socket of its own; and all of the resource's end.
  void Connect(const std::string& resource, std::shared_ptr<PluginEndpoint> plugin,
               PluginOptions options) {
    const std::string socket = absl::StrCat(++sockets_, ".sock");
    EXPECT_TRUE(manager_.Connected(resource, socket, std::move(plugin), options).ok());
  }
  void Disconnect(const std::string& resource) {
    for (int i = 1; i <= sockets_; ++i) {
      manager_.Disconnected(resource, absl::StrCat(i, ".sock"));
    }
  }
  void SendDevices(const std::vector<std::string>& healthy) {
    std::vector<PluginDevice> devices;
    devices.reserve(healthy.size());
    for (const std::string& id : healthy) devices.push_back({id, "Healthy", {}});
    manager_.Update("v/gpu", devices);
  }
  Status Admit(PodUid pod, std::vector<ContainerSpec> containers) {
    PodSpec spec;
    spec.name = absl::StrCat("pod-", pod);
    spec.containers = std::move(containers);
    manager_.SetActive(pod, true);
    return manager_.Admit(pod, spec);
  }
  std::set<std::string> Held(PodUid pod, const std::string& container) {
    std::set<std::string> ids;
    for (const Allocation& allocation : manager_.Allocations(pod, container)) {
      for (const AllocatedDevice& device : allocation.devices) ids.insert(device.id);
    }
    return ids;
  }
  std::set<std::string> InUse() {
    std::set<std::string> ids;
    const ResourceReport gpu = manager_.Report().at("v/gpu");
    for (const DeviceReport& device : gpu.devices) {
      if (device.in_use) ids.insert(device.id);
    }
    return ids;
  }

  SimClock clock_;
  Changes changes_;
  CallLog log_{changes_};
  int stopped_ = 0;
  int sockets_ = 0;
  const TempFolder folder_;
  DeviceManager manager_{{.seed = 5, .checkpoint = folder_.path + "/checkpoint"},
                         [this] { ++stopped_; },
                         clock_,
                         changes_,
                         log_};
  std::shared_ptr<ScriptedPlugin> plugin_ = std::make_shared<ScriptedPlugin>();
};

}  // namespace switchyard::sim
