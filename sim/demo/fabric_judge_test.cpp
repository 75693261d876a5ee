// SPDX-License-Identifier: Apache-2.0
#include "sim/demo/fabric_judge.h"

#include <gtest/gtest.h>

namespace switchyard::sim {
namespace {

class FabricJudgeTest : public ::testing::Test {
 protected:
  static Board Quad() {
    Board board;
    board.partitions = {{1, {1, 2, 3, 4}, 18}, {3, {1, 3}, 18}, {4, {2, 4}, 18}, {7, {1}, 0}};
    return board;
  }

  const Board board_ = Quad();
  FabricJudge judge_{board_};
};

TEST_F(FabricJudgeTest, WhatSomebodyHasIsActiveAndNothingElse) {
  EXPECT_EQ(judge_.Problem({}), "");
  judge_.Has('a', 3);
  EXPECT_EQ(judge_.Problem({3}), "");
  EXPECT_EQ(judge_.Problem({}), "partition 3 of a is not active");
  EXPECT_EQ(judge_.Problem({3, 4}), "partition 4 is active, and nobody has it");
}

TEST_F(FabricJudgeTest, NoGpuIsInTwoHands) {
  judge_.Has('a', 3);
  judge_.Has('b', 7);
  EXPECT_EQ(judge_.Problem({3, 7}), "a and b share a GPU");
}

TEST_F(FabricJudgeTest, WhatWasLeftMayStayUntilItIsInTheWay) {
  judge_.Has('a', 3);
  judge_.Left('a');
  EXPECT_EQ(judge_.Problem({3}), "");
  EXPECT_EQ(judge_.Problem({}), "");
  judge_.Has('b', 4);
  EXPECT_EQ(judge_.Problem({3, 4}), "");
  judge_.Left('b');
  judge_.Has('c', 1);
  EXPECT_NE(judge_.Problem({1, 3}), "");
  EXPECT_NE(judge_.Problem({1, 4}), "");
}

TEST_F(FabricJudgeTest, NorLongerThanTheGrace) {
  judge_.Has('a', 3);
  judge_.Left('a');
  judge_.MayBeActive(4);
  EXPECT_EQ(judge_.Problem({3, 4}), "");
  judge_.Settled();
  EXPECT_EQ(judge_.Problem({}), "");
  EXPECT_NE(judge_.Problem({3}), "");
  EXPECT_NE(judge_.Problem({4}), "");
}

TEST_F(FabricJudgeTest, WhatIsLostStaysInactive) {
  judge_.Has('a', 3);
  judge_.Lost();
  EXPECT_EQ(judge_.Problem({}), "");
  EXPECT_NE(judge_.Problem({3}), "");
  EXPECT_EQ(judge_.PartitionOf('a'), std::nullopt);
}

}  // namespace
}  // namespace switchyard::sim
