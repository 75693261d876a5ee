// SPDX-License-Identifier: Apache-2.0
// libnvfm.so.1 by its C functions, and the Fabric Manager behind it: what the product's own tests
// (src/fabric/helper_test.cpp) can't see, since it never calls in the wrong order. Changes and
// restarts: nvfm_change_test.cpp.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstring>
#include <filesystem>

#include "sim/fm/nvfm_fixture_for_test.h"

namespace switchyard::sim {
namespace {

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
