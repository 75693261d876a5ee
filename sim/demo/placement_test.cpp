// SPDX-License-Identifier: Apache-2.0
#include "sim/demo/placement.h"

#include <gtest/gtest.h>

namespace switchyard::sim {
namespace {

Board Quad() {
  Board board;
  board.partitions = {{1, {1, 2, 3, 4}, 18}, {3, {1, 3}, 18}, {4, {2, 4}, 18}, {7, {1}, 0}};
  for (int module = 1; module <= 4; ++module) {
    // Bus order is 4, 3, 2, 1.
    board.devices.push_back(
        {module, {0, static_cast<std::uint8_t>(0x50 - module), 0, 0}, 0, module, 0, ""});
  }
  return board;
}

TEST(Placement, AFreePartitionHasNoMemberHeld) {
  const Board board = Quad();
  Placement placement(board);
  EXPECT_EQ(placement.FreePartition(2), 3);
  placement.Add('a', {3});
  EXPECT_EQ(placement.FreePartition(2), 4);
  placement.Add('b', {2});
  EXPECT_EQ(placement.FreePartition(2), std::nullopt);
  placement.Remove('a');
  EXPECT_EQ(placement.FreePartition(2), 3);
}

TEST(Placement, OnlyTheExactSetIsAPartition) {
  const Board board = Quad();
  const Placement placement(board);
  EXPECT_EQ(placement.PartitionOf({1, 3}), 3);
  EXPECT_EQ(placement.PartitionOf({1, 2}), std::nullopt);
  EXPECT_EQ(placement.PartitionOf({}), std::nullopt);
}

TEST(Placement, SaysInWordsWhatAPodGot) {
  const Board board = Quad();
  const Placement placement(board);
  EXPECT_EQ(placement.Describe({3, 1}), "modules 1,3 = partition 3");
  EXPECT_EQ(placement.Describe({1, 2}), "modules 1,2 = no partition");
  EXPECT_EQ(placement.Describe({}), "not placed");
}

TEST(Placement, ThePictureKeepsPairsTogether) {
  const Board board = Quad();
  Placement placement(board);
  placement.Add('a', {2, 4});
  EXPECT_EQ(placement.Picture(), "[1. 3.] [2a 4a]");
}

TEST(CountOnly, TakesTheFirstFreeInAddressOrder) {
  const Board board = Quad();
  EXPECT_EQ(CountOnly(board, {1, 2, 3, 4}, 2), (std::set<int>{3, 4}));
  EXPECT_EQ(CountOnly(board, {1, 2, 4}, 2), (std::set<int>{2, 4}));
  EXPECT_EQ(CountOnly(board, {1}, 2), std::set<int>{});
}

TEST(NoPair, IsNoPartition) { EXPECT_EQ(NoPair(Quad()), std::make_pair(1, 2)); }

}  // namespace
}  // namespace switchyard::sim
