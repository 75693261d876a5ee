// SPDX-License-Identifier: Apache-2.0
// libnvfm.so.1 by its C functions, and the Fabric Manager behind it: what the product's own tests
// (src/fabric/helper_test.cpp) can't see, since it never calls in the wrong order.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <vector>

#include "base/unique_fd.h"
#include "sim/fm/abi.h"
#include "sim/fm/fabric_manager.h"
#include "sim/fm/wire.h"

namespace switchyard::sim {
namespace {

Board Pair() {
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

TEST_F(NvfmTest, NothingWorksBeforeInitAndInitWorksOnce) {
  EXPECT_EQ(Connect(Params()), -4);
  EXPECT_EQ(List(), -4);
  EXPECT_EQ(disconnect_(handle_), -4);
  EXPECT_EQ(shutdown_(), -4);
  EXPECT_EQ(init_(), 0);
  EXPECT_EQ(init_(), -7);
  EXPECT_EQ(Connect(Params()), 0);
  EXPECT_EQ(shutdown_(), 0);
  EXPECT_EQ(List(), -4);
  EXPECT_EQ(init_(), -7) << "once a process";
}

TEST_F(NvfmTest, ListsWhatAnOperatorActivated) {
  ASSERT_EQ(init_(), 0);
  ASSERT_EQ(Connect(Params()), 0);
  ASSERT_TRUE(manager_->SetActive({2, 3}).ok());
  ASSERT_EQ(List(), 0);
  ASSERT_EQ(partitions_->numPartitions, 3u);
  EXPECT_EQ(partitions_->partitionInfo[0].partitionId, 1u);
  EXPECT_EQ(partitions_->partitionInfo[0].numGpus, 2u);
  EXPECT_EQ(partitions_->partitionInfo[0].isActive, 0u);
  EXPECT_EQ(partitions_->partitionInfo[1].isActive, 1u);
  EXPECT_EQ(partitions_->partitionInfo[2].isActive, 1u);
  EXPECT_EQ(disconnect_(handle_), 0);
  EXPECT_EQ(disconnect_(handle_), -1) << "a handle that is closed";
  EXPECT_EQ(List(), -1);
}

TEST_F(NvfmTest, ChangesAreRefusedBeforeInitAndOnAClosedHandle) {
  EXPECT_EQ(activate_(handle_, 1), -4);
  EXPECT_EQ(deactivate_(handle_, 1), -4);
  EXPECT_EQ(SetActivated({}), -4);
  ASSERT_EQ(init_(), 0);
  EXPECT_EQ(activate_(handle_, 1), -1);
  EXPECT_EQ(set_activated_(handle_, nullptr), -1);
  EXPECT_TRUE(manager_->calls().empty());
}

TEST_F(NvfmTest, ActivatesDeactivatesAndLists) {
  ConnectWith({});
  EXPECT_EQ(activate_(handle_, 2), 0);
  EXPECT_EQ(activate_(handle_, 2), -7);
  EXPECT_EQ(activate_(handle_, 1), -7);
  EXPECT_EQ(activate_(handle_, 9), -1);
  EXPECT_EQ(activate_(handle_, 0xffffffff), -1);
  ASSERT_EQ(List(), 0);
  EXPECT_EQ(partitions_->partitionInfo[0].isActive, 0u);
  EXPECT_EQ(partitions_->partitionInfo[1].isActive, 1u);
  EXPECT_EQ(deactivate_(handle_, 2), 0);
  EXPECT_EQ(deactivate_(handle_, 2), -4);
  EXPECT_TRUE(manager_->active().empty());
  EXPECT_EQ(manager_->calls(), (std::map<WireCall, int>{{WireCall::kConnect, 1},
                                                        {WireCall::kListPartitions, 1},
                                                        {WireCall::kActivate, 5},
                                                        {WireCall::kDeactivate, 2}}));
}

TEST_F(NvfmTest, TheReturnCodesAreAnOption) {
  manager_ = std::make_unique<FabricManager>(
      Pair(), FabricManager::Options{.unix_socket = folder_ + "/fm",
                                     .return_codes = ReturnCodes::kBlackwell});
  ASSERT_TRUE(manager_->Start().ok());
  ConnectWith({});
  EXPECT_EQ(deactivate_(handle_, 2), -18);
}

TEST_F(NvfmTest, TheInternalSocketRefusesChangesToo) {
  ASSERT_EQ(init_(), 0);
  ASSERT_EQ(Connect(Params(folder_ + "/internal")), 0);
  EXPECT_EQ(activate_(handle_, 1), -4);
  EXPECT_EQ(deactivate_(handle_, 1), -4);
  EXPECT_EQ(SetActivated({}), -4);
  EXPECT_TRUE(manager_->active().empty());
}

TEST_F(NvfmTest, AWarmRestartWaitsForTheListAndRefusesEverythingElse) {
  ASSERT_TRUE(manager_->SetActive({2, 3}).ok());
  ASSERT_EQ(init_(), 0);
  ASSERT_EQ(Connect(Params()), 0);
  ASSERT_TRUE(manager_->Restart(FabricManager::Kind::kWarm).ok());
  EXPECT_EQ(List(), -9) << "the connection of before";
  ASSERT_EQ(Connect(Params()), 0);
  EXPECT_EQ(List(), -8);
  EXPECT_EQ(activate_(handle_, 2), -8);
  EXPECT_EQ(deactivate_(handle_, 2), -8);
  FabricManagerFaults faults;
  faults.waiting_code = -22;
  manager_->SetFaults(faults);
  EXPECT_EQ(List(), -22);
  fmActivatedFabricPartitionList wrong{};
  wrong.version = 0x02000108;
  EXPECT_EQ(set_activated_(handle_, &wrong), -6);
  wrong.numPartitions = 65;
  EXPECT_EQ(set_activated_(handle_, &wrong), -1);
  EXPECT_TRUE(manager_->waiting());
  EXPECT_EQ(SetActivated({2, 3}), 0);
  EXPECT_EQ(List(), 0);
  EXPECT_EQ(manager_->routed(), (std::set<int>{2, 3}));
  clock_.Advance(FabricManager::kWindow * 2);
  EXPECT_EQ(List(), 0) << "the window is over, and it does not matter any more";
}

TEST_F(NvfmTest, WithoutTheListItExitsAfterTheWindow) {
  ASSERT_TRUE(manager_->SetActive({2}).ok());
  ASSERT_TRUE(manager_->Restart(FabricManager::Kind::kWarm).ok());
  ASSERT_EQ(init_(), 0);
  clock_.Advance(FabricManager::kWindow - absl::Milliseconds(1));
  EXPECT_EQ(Connect(Params()), 0) << "it is still there";
  clock_.Advance(absl::Milliseconds(1));
  ASSERT_TRUE(manager_->AwaitStopped(absl::Seconds(60)));
  EXPECT_FALSE(manager_->running());
  EXPECT_EQ(Connect(Params()), -9);
  EXPECT_EQ(manager_->routed(), std::set<int>{2}) << "the switches go on";
  // Started again it has a new window.
  ASSERT_TRUE(manager_->Start().ok());
  EXPECT_TRUE(manager_->waiting());
  ASSERT_EQ(Connect(Params()), 0);
  EXPECT_EQ(SetActivated({2}), 0);
  EXPECT_EQ(manager_->active(), std::set<int>{2});
}

TEST_F(NvfmTest, AColdRestartForgetsAndRoutesNothing) {
  ASSERT_TRUE(manager_->SetActive({2}).ok());
  ASSERT_TRUE(manager_->Restart(FabricManager::Kind::kCold).ok());
  ConnectWith({});
  ASSERT_EQ(List(), 0);
  EXPECT_EQ(partitions_->partitionInfo[1].isActive, 0u);
  EXPECT_TRUE(manager_->routed().empty());
  EXPECT_EQ(SetActivated({2}), -2) << "nobody waits for a list";
  EXPECT_TRUE(manager_->active().empty());
}

TEST_F(NvfmTest, ARestartFromDownStarts) {
  manager_->Stop();
  ASSERT_TRUE(manager_->Restart(FabricManager::Kind::kCold).ok());
  EXPECT_TRUE(manager_->running());
}

TEST_F(NvfmTest, ChangesAnswerWithTheCodesTheyAreTold) {
  FabricManagerFaults faults;
  faults.change_codes = {{WireCall::kActivate, -10}, {WireCall::kSetActivated, -22}};
  ConnectWith(faults);
  EXPECT_EQ(activate_(handle_, 2), -10);
  EXPECT_EQ(SetActivated({}), -22);
  EXPECT_EQ(deactivate_(handle_, 2), -4) << "not told";
  EXPECT_TRUE(manager_->active().empty());
}

TEST_F(NvfmTest, SuccessMayChangeNothing) {
  FabricManagerFaults faults;
  faults.no_effect = true;
  ASSERT_TRUE(manager_->SetActive({3}).ok());
  ConnectWith(faults);
  EXPECT_EQ(activate_(handle_, 2), 0);
  EXPECT_EQ(deactivate_(handle_, 3), 0);
  EXPECT_EQ(activate_(handle_, 9), -1);
  EXPECT_EQ(manager_->active(), std::set<int>{3});
}

TEST_F(NvfmTest, WhatIsNotListedCantBeActivated) {
  Board board = Pair();
  board.identity_by_pci = true;
  manager_ = std::make_unique<FabricManager>(
      board, FabricManager::Options{.unix_socket = folder_ + "/fm"});
  ASSERT_TRUE(manager_->Start().ok());
  FabricManagerFaults faults;
  faults.failed_modules = {2};
  ConnectWith(faults);
  EXPECT_EQ(activate_(handle_, 1), -1) << "it is not in the list";
  EXPECT_EQ(activate_(handle_, 2), 0);
}

TEST_F(NvfmTest, AnotherClientsHandIsRefusedLikeAnyones) {
  EXPECT_EQ(manager_->Activate(2), 0);
  EXPECT_EQ(manager_->Activate(1), -7);
  EXPECT_EQ(manager_->Deactivate(2), 0);
  ASSERT_TRUE(manager_->Restart(FabricManager::Kind::kWarm).ok());
  EXPECT_EQ(manager_->Activate(2), -8);
  EXPECT_EQ(manager_->SetActivated({}), 0);
  manager_->Stop();
  EXPECT_EQ(manager_->Activate(2), -9);
  EXPECT_TRUE(manager_->calls().empty()) << "not over the wire";
}

TEST_F(NvfmTest, ConnectRefusesWrongParameters) {
  ASSERT_EQ(init_(), 0);
  fmConnectParams params = Params();
  params.timeoutMs = 0;
  EXPECT_EQ(Connect(params), -1);
  params = Params();
  params.version = 0x03000110;
  EXPECT_EQ(Connect(params), -6);
  params = Params();
  params.addressType = 0;  // version 2 goes by this word alone
  EXPECT_EQ(Connect(params), -1);
  EXPECT_EQ(Connect(Params(folder_ + "/nobody")), -9);
}

TEST_F(NvfmTest, Version1GoesByTheOlderWord) {
  ASSERT_EQ(init_(), 0);
  fmConnectParams params = Params(manager_->tcp_address());
  params.version = kConnectV1;
  params.addressIsUnixSocket = 0;
  params.addressType = 99;  // beyond the end of version 1
  EXPECT_EQ(Connect(params), 0);
  EXPECT_EQ(List(), 0);
}

TEST_F(NvfmTest, InternalSocketConnectsAndThenRefuses) {
  ASSERT_EQ(init_(), 0);
  EXPECT_EQ(Connect(Params(folder_ + "/internal")), 0);
  EXPECT_EQ(List(), -4);
}

TEST_F(NvfmTest, WrongListVersionIsRefused) {
  ASSERT_EQ(init_(), 0);
  ASSERT_EQ(Connect(Params()), 0);
  partitions_->version = 0x0202030c;
  EXPECT_EQ(list_(handle_, partitions_.get()), -6);
  EXPECT_EQ(List(), 0) << "the connection is still good";
}

TEST_F(NvfmTest, AConnectThatIsNeverAnsweredTimesOut) {
  ASSERT_EQ(init_(), 0);
  FabricManagerFaults faults;
  faults.hang = FabricManagerFaults::Hang::kConnect;
  manager_->SetFaults(faults);
  fmConnectParams params = Params();
  params.timeoutMs = 20;
  EXPECT_EQ(Connect(params), -5);
}

TEST_F(NvfmTest, GoingDownBreaksConnectionsAndComingUpKeepsThePort) {
  ASSERT_EQ(init_(), 0);
  ASSERT_EQ(Connect(Params()), 0);
  ASSERT_TRUE(manager_->SetActive({1}).ok());
  const std::string address = manager_->tcp_address();
  manager_->Stop();
  EXPECT_FALSE(manager_->running());
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/fm"));
  EXPECT_EQ(List(), -9);
  EXPECT_EQ(Connect(Params()), -9);
  ASSERT_TRUE(manager_->Start().ok());
  EXPECT_EQ(manager_->tcp_address(), address);
  EXPECT_EQ(manager_->active(), std::set<int>{1});
  EXPECT_EQ(Connect(Params()), 0);
}

// Another client, straight on the wire: asks and does not wait.
UniqueFd AskToConnect(const std::string& path) {
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

// Connects and asks to activate partition 2, and does not wait for that.
UniqueFd AskToActivate(const std::string& path) {
  UniqueFd fd = AskToConnect(path);
  WireReply reply;
  EXPECT_EQ(::recv(fd.get(), &reply, sizeof(reply), MSG_WAITALL),
            static_cast<ssize_t>(sizeof(reply)));
  WireRequest request;
  request.call = WireCall::kActivate;
  request.count = 1;
  request.ids[0] = 2;
  EXPECT_EQ(::send(fd.get(), &request, sizeof(request), 0), static_cast<ssize_t>(sizeof(request)));
  return fd;
}

TEST_F(NvfmTest, ALateChangeIsDoneOnceItsCallerHasGone) {
  FabricManagerFaults faults;
  faults.late_changes = true;
  manager_->SetFaults(faults);
  UniqueFd held = AskToActivate(folder_ + "/fm");
  ASSERT_TRUE(manager_->AwaitHeldCall(absl::Seconds(60)));
  EXPECT_TRUE(manager_->active().empty());
  held.reset();
  EXPECT_TRUE(manager_->AwaitActive({2}, absl::Seconds(60)));
}

TEST_F(NvfmTest, ALateChangeGoesDownWithFabricManager) {
  FabricManagerFaults faults;
  faults.late_changes = true;
  manager_->SetFaults(faults);
  const UniqueFd held = AskToActivate(folder_ + "/fm");
  ASSERT_TRUE(manager_->AwaitHeldCall(absl::Seconds(60)));
  ASSERT_TRUE(manager_->Restart(FabricManager::Kind::kCold).ok());
  EXPECT_TRUE(manager_->active().empty());
  EXPECT_FALSE(manager_->AwaitHeldCall(absl::ZeroDuration()));
}

TEST_F(NvfmTest, OneHeldCallHoldsNoOther) {
  ASSERT_EQ(init_(), 0);
  FabricManagerFaults faults;
  faults.hang = FabricManagerFaults::Hang::kConnect;
  manager_->SetFaults(faults);
  UniqueFd held = AskToConnect(folder_ + "/fm");
  ASSERT_TRUE(manager_->AwaitHeldCall(absl::Seconds(60)));
  manager_->SetFaults({});
  EXPECT_EQ(Connect(Params()), 0);
  EXPECT_EQ(List(), 0);
  char byte;
  EXPECT_EQ(::recv(held.get(), &byte, 1, MSG_DONTWAIT), -1) << "held for good";
}

TEST(FabricManager, RefusesABoardThatFmCouldNotList) {
  Board board = Pair();
  board.partitions[0].modules.assign(17, 1);
  FabricManager manager(board, FabricManager::Options());
  EXPECT_EQ(manager.Start().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace switchyard::sim
