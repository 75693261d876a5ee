// SPDX-License-Identifier: Apache-2.0
// Changes and restarts of the simulated Fabric Manager, through libnvfm.so.1's C functions.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "sim/fm/nvfm_fixture_for_test.h"

namespace switchyard::sim {
namespace {

class NvfmChangeTest : public NvfmTest {};

TEST_F(NvfmChangeTest, ChangesAreRefusedBeforeInitAndOnAClosedHandle) {
  EXPECT_EQ(activate_(handle_, 1), -4);
  EXPECT_EQ(deactivate_(handle_, 1), -4);
  EXPECT_EQ(SetActivated({}), -4);
  ASSERT_EQ(init_(), 0);
  EXPECT_EQ(activate_(handle_, 1), -1);
  EXPECT_EQ(set_activated_(handle_, nullptr), -1);
  EXPECT_TRUE(manager_->calls().empty());
}

TEST_F(NvfmChangeTest, ActivatesDeactivatesAndLists) {
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

TEST_F(NvfmChangeTest, TheReturnCodesAreAnOption) {
  manager_ = std::make_unique<FabricManager>(
      Pair(), FabricManager::Options{.unix_socket = folder_ + "/fm",
                                     .return_codes = ReturnCodes::kBlackwell});
  ASSERT_TRUE(manager_->Start().ok());
  ConnectWith({});
  EXPECT_EQ(deactivate_(handle_, 2), -18);
}

TEST_F(NvfmChangeTest, TheInternalSocketRefusesChangesToo) {
  ASSERT_EQ(init_(), 0);
  ASSERT_EQ(Connect(Params(folder_ + "/internal")), 0);
  EXPECT_EQ(activate_(handle_, 1), -4);
  EXPECT_EQ(deactivate_(handle_, 1), -4);
  EXPECT_EQ(SetActivated({}), -4);
  EXPECT_TRUE(manager_->active().empty());
}

TEST_F(NvfmChangeTest, AWarmRestartWaitsForTheListAndRefusesEverythingElse) {
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

TEST_F(NvfmChangeTest, WithoutTheListItExitsAfterTheWindow) {
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

TEST_F(NvfmChangeTest, AColdRestartForgetsAndRoutesNothing) {
  ASSERT_TRUE(manager_->SetActive({2}).ok());
  ASSERT_TRUE(manager_->Restart(FabricManager::Kind::kCold).ok());
  ConnectWith({});
  ASSERT_EQ(List(), 0);
  EXPECT_EQ(partitions_->partitionInfo[1].isActive, 0u);
  EXPECT_TRUE(manager_->routed().empty());
  EXPECT_EQ(SetActivated({2}), -2) << "nobody waits for a list";
  EXPECT_TRUE(manager_->active().empty());
}

TEST_F(NvfmChangeTest, ARestartFromDownStarts) {
  manager_->Stop();
  ASSERT_TRUE(manager_->Restart(FabricManager::Kind::kCold).ok());
  EXPECT_TRUE(manager_->running());
}

TEST_F(NvfmChangeTest, ChangesAnswerWithTheCodesTheyAreTold) {
  FabricManagerFaults faults;
  faults.change_codes = {{WireCall::kActivate, -10}, {WireCall::kSetActivated, -22}};
  ConnectWith(faults);
  EXPECT_EQ(activate_(handle_, 2), -10);
  EXPECT_EQ(SetActivated({}), -22);
  EXPECT_EQ(deactivate_(handle_, 2), -4) << "not told";
  EXPECT_TRUE(manager_->active().empty());
}

TEST_F(NvfmChangeTest, SuccessMayChangeNothing) {
  FabricManagerFaults faults;
  faults.no_effect = true;
  ASSERT_TRUE(manager_->SetActive({3}).ok());
  ConnectWith(faults);
  EXPECT_EQ(activate_(handle_, 2), 0);
  EXPECT_EQ(deactivate_(handle_, 3), 0);
  EXPECT_EQ(activate_(handle_, 9), -1);
  EXPECT_EQ(manager_->active(), std::set<int>{3});
}

TEST_F(NvfmChangeTest, WhatIsNotListedCantBeActivated) {
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

TEST_F(NvfmChangeTest, AnotherClientsHandIsRefusedLikeAnyones) {
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

TEST_F(NvfmChangeTest, ALateChangeIsDoneOnceItsCallerHasGone) {
  FabricManagerFaults faults;
  faults.late_changes = true;
  manager_->SetFaults(faults);
  UniqueFd held = AskToActivate(folder_ + "/fm");
  ASSERT_TRUE(manager_->AwaitHeldCall(absl::Seconds(60)));
  EXPECT_TRUE(manager_->active().empty());
  held.reset();
  EXPECT_TRUE(manager_->AwaitActive({2}, absl::Seconds(60)));
}

TEST_F(NvfmChangeTest, ALateChangeGoesDownWithFabricManager) {
  FabricManagerFaults faults;
  faults.late_changes = true;
  manager_->SetFaults(faults);
  const UniqueFd held = AskToActivate(folder_ + "/fm");
  ASSERT_TRUE(manager_->AwaitHeldCall(absl::Seconds(60)));
  ASSERT_TRUE(manager_->Restart(FabricManager::Kind::kCold).ok());
  EXPECT_TRUE(manager_->active().empty());
  EXPECT_FALSE(manager_->AwaitHeldCall(absl::ZeroDuration()));
}

TEST_F(NvfmChangeTest, ASlowChangeIsDoneWhetherOrNotItsCallerIsThere) {
  FabricManagerFaults faults;
  faults.change_time = absl::Milliseconds(1);
  ConnectWith(faults);
  EXPECT_EQ(activate_(handle_, 3), 0);
  EXPECT_EQ(manager_->active(), std::set<int>{3});
  AskToActivate(folder_ + "/fm").reset();
  EXPECT_TRUE(manager_->AwaitActive({2, 3}, absl::Seconds(60)));
  EXPECT_EQ(List(), 0) << "others are served meanwhile";
}

TEST_F(NvfmChangeTest, ASlowChangeIsNotDoneBeforeItsTime) {
  FabricManagerFaults faults;
  faults.change_time = absl::Hours(1);
  ConnectWith(faults);
  UniqueFd asked = AskToActivate(folder_ + "/fm");
  ASSERT_TRUE(manager_->AwaitCalls(WireCall::kActivate, 1, absl::Seconds(60)));
  asked.reset();
  EXPECT_EQ(List(), 0);
  EXPECT_TRUE(manager_->active().empty());
  ASSERT_TRUE(manager_->Restart(FabricManager::Kind::kWarm).ok());
  EXPECT_FALSE(manager_->AwaitServing(absl::ZeroDuration()));
  ASSERT_EQ(Connect(Params()), 0);
  manager_->SetFaults({});
  EXPECT_EQ(SetActivated({}), 0);
  EXPECT_TRUE(manager_->AwaitServing(absl::ZeroDuration()));
  EXPECT_TRUE(manager_->active().empty());
}

}  // namespace
}  // namespace switchyard::sim
