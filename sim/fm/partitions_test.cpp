// SPDX-License-Identifier: Apache-2.0
#include "sim/fm/partitions.h"

#include <gtest/gtest.h>

#include <vector>

namespace switchyard::sim {
namespace {

class PartitionsTest : public testing::Test {
 protected:
  PartitionsTest() { board_.partitions = {{1, {1, 2}, 18}, {2, {1}, 0}, {3, {2}, 0}, {4, {3}, 0}}; }

  static fmReturn SetActivated(Partitions& partitions, std::vector<std::uint32_t> ids) {
    return partitions.SetActivated(ids);
  }

  Board board_;
};

TEST_F(PartitionsTest, HopperAnswersWithTheOlderCodes) {
  Partitions partitions(board_, ReturnCodes::kHopper);
  EXPECT_EQ(partitions.Activate(2), 0);
  EXPECT_EQ(partitions.Activate(2), -7);
  EXPECT_EQ(partitions.Activate(1), -7);
  EXPECT_EQ(partitions.Activate(9), -1);
  EXPECT_EQ(partitions.Activate(3), 0);
  EXPECT_EQ(partitions.Deactivate(1), -4);
  EXPECT_EQ(partitions.Deactivate(9), -1);
  EXPECT_EQ(partitions.Deactivate(2), 0);
  EXPECT_EQ(partitions.Deactivate(2), -4);
  EXPECT_EQ(partitions.active(), std::set<int>{3});
  EXPECT_EQ(partitions.routed(), std::set<int>{3});
}

TEST_F(PartitionsTest, BlackwellAnswersWithTheNewerCodes) {
  Partitions partitions(board_, ReturnCodes::kBlackwell);
  EXPECT_EQ(partitions.Activate(2), 0);
  EXPECT_EQ(partitions.Activate(2), -17);
  EXPECT_EQ(partitions.Activate(1), -24);
  EXPECT_EQ(partitions.Activate(9), -1);
  EXPECT_EQ(partitions.Deactivate(3), -18);
  EXPECT_EQ(partitions.Deactivate(9), -1);
}

TEST_F(PartitionsTest, TheBoardNamesTheGeneration) {
  board_.return_codes = "blackwell";
  EXPECT_EQ(ReturnCodesOf(board_), ReturnCodes::kBlackwell);
  for (const char* older : {"hopper", "ampere", ""}) {
    board_.return_codes = older;
    EXPECT_EQ(ReturnCodesOf(board_), ReturnCodes::kHopper) << older;
  }
}

TEST_F(PartitionsTest, AWarmRestartKeepsTheRoutingUntilTheListComes) {
  Partitions partitions(board_, ReturnCodes::kHopper);
  ASSERT_TRUE(partitions.SetActive({2, 3, 4}).ok());
  partitions.RestartWarm();
  EXPECT_TRUE(partitions.waiting());
  EXPECT_TRUE(partitions.active().empty());
  EXPECT_EQ(partitions.routed(), (std::set<int>{2, 3, 4}));
  EXPECT_EQ(SetActivated(partitions, {2, 9}), -1);
  EXPECT_EQ(SetActivated(partitions, {2, 2}), -1);
  EXPECT_EQ(SetActivated(partitions, {1, 2}), -1) << "they share a GPU";
  EXPECT_TRUE(partitions.waiting()) << "a list that is refused is none";
  EXPECT_EQ(SetActivated(partitions, {2, 3}), 0);
  EXPECT_FALSE(partitions.waiting());
  EXPECT_EQ(partitions.active(), (std::set<int>{2, 3}));
  EXPECT_EQ(partitions.routed(), (std::set<int>{2, 3})) << "4 was left out";
}

TEST_F(PartitionsTest, AnIdThatWasNotActiveIsListedAndCarriesNoTraffic) {
  Partitions partitions(board_, ReturnCodes::kHopper);
  ASSERT_TRUE(partitions.SetActive({2}).ok());
  partitions.RestartWarm();
  EXPECT_EQ(SetActivated(partitions, {2, 3}), 0);
  EXPECT_EQ(partitions.active(), (std::set<int>{2, 3}));
  EXPECT_EQ(partitions.routed(), std::set<int>{2});
}

TEST_F(PartitionsTest, NobodyWaitsForAListAfterAColdRestart) {
  Partitions partitions(board_, ReturnCodes::kHopper);
  ASSERT_TRUE(partitions.SetActive({2, 3}).ok());
  partitions.RestartCold();
  EXPECT_TRUE(partitions.active().empty());
  EXPECT_TRUE(partitions.routed().empty());
  EXPECT_EQ(SetActivated(partitions, {2}), -2);
  EXPECT_TRUE(partitions.active().empty());
}

TEST_F(PartitionsTest, ActiveSetsThatFmWouldRefuseAreRefused) {
  Partitions partitions(board_, ReturnCodes::kHopper);
  EXPECT_EQ(partitions.SetActive({9}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(partitions.SetActive({1, 2}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(partitions.active().empty());
}

}  // namespace
}  // namespace switchyard::sim
