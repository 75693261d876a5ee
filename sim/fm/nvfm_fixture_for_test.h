// SPDX-License-Identifier: Apache-2.0
#pragma once

// libnvfm.so.1 opened as any program would open it, and a Fabric Manager with two GPUs behind it.
// One test at a time.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "sim/fm/abi.h"
#include "sim/fm/fabric_manager.h"
#include "sim/fm/wire.h"

namespace switchyard::sim {

// Partitions 1 {1,2}, 2 {1}, 3 {2}.
inline Board Pair() {
  Board board;
  board.name = "pair";
  board.partitions = {{1, {1, 2}, 18}, {2, {1}, 0}, {3, {2}, 0}};
  for (int module : {1, 2}) {
    BoardDevice device;
    device.module = device.physical_id = module;
    board.devices.push_back(device);
  }
  return board;
}

class NvfmTest : public testing::Test {
 protected:
  NvfmTest() : library_(::dlopen(SWITCHYARD_LIB_DIR "/libnvfm.so.1", RTLD_NOW | RTLD_LOCAL)) {
    EXPECT_NE(library_, nullptr) << ::dlerror();
    Bind("fmLibInit", init_);
    Bind("fmLibShutdown", shutdown_);
    Bind("fmConnect", connect_);
    Bind("fmDisconnect", disconnect_);
    Bind("fmGetSupportedFabricPartitions", list_);
    Bind("fmActivateFabricPartition", activate_);
    Bind("fmDeactivateFabricPartition", deactivate_);
    Bind("fmSetActivatedFabricPartitions", set_activated_);
    char folder[] = "/tmp/swy-nvfm-XXXXXX";
    folder_ = ::mkdtemp(folder);
    manager_ = std::make_unique<FabricManager>(
        Pair(), FabricManager::Options{.tcp = "127.0.0.1:0",
                                       .unix_socket = folder_ + "/fm",
                                       .internal_socket = folder_ + "/internal",
                                       .clock = &clock_});
    const Status status = manager_->Start();
    EXPECT_TRUE(status.ok()) << status;
  }
  ~NvfmTest() override {
    (void)shutdown_();
    ::dlclose(library_);
    std::filesystem::remove_all(folder_);
  }

  template <typename Function>
  void Bind(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(::dlsym(library_, name));
    ASSERT_NE(function, nullptr) << name;
  }

  // Version 2 parameters for the unix socket, or `path`.
  fmConnectParams Params(const std::string& path = "") const {
    fmConnectParams params{};
    params.version = kConnectV2;
    params.timeoutMs = 60'000;
    params.addressIsUnixSocket = 1;
    params.addressType = kAddressUnix;
    std::strcpy(params.addressInfo, path.empty() ? (folder_ + "/fm").c_str() : path.c_str());
    return params;
  }
  fmReturn Connect(fmConnectParams params) { return connect_(&params, &handle_); }
  fmReturn List() {
    *partitions_ = {};
    partitions_->version = kPartitionList;
    return list_(handle_, partitions_.get());
  }

  fmReturn SetActivated(std::vector<std::uint32_t> ids) {
    fmActivatedFabricPartitionList list{};
    list.version = kActivatedList;
    list.numPartitions = static_cast<std::uint32_t>(ids.size());
    std::copy(ids.begin(), ids.end(), list.partitionIds);
    return set_activated_(handle_, &list);
  }
  // A connection to a Fabric Manager whose faults are these.
  void ConnectWith(const FabricManagerFaults& faults) {
    ASSERT_EQ(init_(), 0);
    ASSERT_EQ(Connect(Params()), 0);
    manager_->SetFaults(faults);
  }

  void* library_;
  fmReturn (*init_)() = nullptr;
  fmReturn (*shutdown_)() = nullptr;
  fmReturn (*connect_)(fmConnectParams*, fmHandle*) = nullptr;
  fmReturn (*disconnect_)(fmHandle) = nullptr;
  fmReturn (*list_)(fmHandle, fmFabricPartitionList*) = nullptr;
  fmReturn (*activate_)(fmHandle, std::uint32_t) = nullptr;
  fmReturn (*deactivate_)(fmHandle, std::uint32_t) = nullptr;
  fmReturn (*set_activated_)(fmHandle, fmActivatedFabricPartitionList*) = nullptr;
  SimClock clock_;
  std::string folder_;
  std::unique_ptr<FabricManager> manager_;
  fmHandle handle_ = nullptr;
  std::unique_ptr<fmFabricPartitionList> partitions_ = std::make_unique<fmFabricPartitionList>();
};

// Another client, straight on the wire: asks and does not wait.
inline UniqueFd AskToConnect(const std::string& path) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un local{};
  local.sun_family = AF_UNIX;
  std::strcpy(local.sun_path, path.c_str());
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&local), sizeof(local)), 0);
  WireRequest request;
  request.version = kConnectV2;
  EXPECT_EQ(::send(fd.get(), &request, sizeof(request), 0), static_cast<ssize_t>(sizeof(request)));
  return fd;
}

}  // namespace switchyard::sim
