// SPDX-License-Identifier: Apache-2.0
#include "bench/placement/states.h"

#include <gtest/gtest.h>

#include <set>

#include "bench/placement/testing/known.h"

namespace switchyard::bench {
namespace {

// A pair is free, has one single of two, both, or is held: 5 states. A quad is two pairs or held:
// 26. A board is two quads or held.
TEST(States, ANestedBoardCountsAsItsParts) {
  const Yard yard = LoadYard("hgx-h100", 1).value();
  const States states = EveryState(yard, 1000).value();
  EXPECT_EQ(states.held.size(), 26u * 26 + 1);
  EXPECT_EQ(std::set<Held>(states.held.begin(), states.held.end()).size(), states.held.size());
  for (const Held held : states.held) {
    int modules = 0;
    for (size_t i = 0; i < yard.table.partitions.size(); ++i) {
      if ((held >> i & 1u) != 0) modules += yard.table.partitions[i].modules.size();
    }
    EXPECT_EQ(yard.ModulesOf(held).size(), modules) << "not disjoint";
  }
}

// Up to symmetry a pair has 4 states, a quad 4 * 5 / 2 + 1 = 11, the board 11 * 12 / 2 + 1.
TEST(States, SymmetricOnesAreOneClass) {
  for (const char* board : {"hgx-h100", "hgx-b200"}) {
    const States classes = EveryStateBySymmetry(LoadYard(board, 1).value(), 1000).value();
    EXPECT_EQ(classes.held.size(), 67u) << board;
    EXPECT_EQ(classes.class_of.size(), 677u) << board;
    EXPECT_EQ(classes.held.front(), 0u);
    EXPECT_EQ(classes.class_of.at(0), 0u);
    for (size_t i = 0; i < classes.held.size(); ++i)
      EXPECT_EQ(classes.class_of.at(classes.held[i]), i);
  }
}

// Four pairs in a ring, neighbours being a quad (HGX-2 has its quads like that): the bracelets of
// four beads in four colours are 55; a quad held leaves two pairs in 10 ways; or both are held.
TEST(States, PartitionsThatOverlapHaveTheirOwnSymmetry) {
  const Yard yard = MakeYard({{1, 2, 3, 4},
                              {3, 4, 5, 6},
                              {5, 6, 7, 8},
                              {7, 8, 1, 2},
                              {1, 2},
                              {3, 4},
                              {5, 6},
                              {7, 8},
                              {1},
                              {2},
                              {3},
                              {4},
                              {5},
                              {6},
                              {7},
                              {8}});
  const States classes = EveryStateBySymmetry(yard, 1000).value();
  EXPECT_EQ(classes.class_of.size(), 5u * 5 * 5 * 5 + 4 * 25 + 2);
  EXPECT_EQ(classes.held.size(), 55u + 10 + 1);
}

TEST(States, WithoutSymmetryEachIsItsOwn) {
  const Yard yard = MakeYard({{1}, {2, 3}, {2}, {1, 2, 3, 4}});
  EXPECT_TRUE(Symmetries(yard).empty());
  const States classes = EveryStateBySymmetry(yard, 1000).value();
  EXPECT_EQ(classes.held.size(), classes.class_of.size());
}

// Equal sizes are not enough: {3} is in a pair, {1} is in none.
TEST(States, ASymmetryMapsPartitionsOntoPartitions) {
  const Yard yard = MakeYard({{1}, {2, 3}, {2}, {3}});
  const auto symmetries = Symmetries(yard);
  ASSERT_EQ(symmetries.size(), 1u);
  EXPECT_EQ(symmetries[0], (std::vector<int>{0, 1, 3, 2}));
}

// Seven triples, each two modules in exactly one (the Fano plane): counting what two modules share
// tells nothing, only the whole permutation does.
TEST(States, ASymmetryIsCheckedAsAWhole) {
  const Yard yard =
      MakeYard({{1, 2, 3}, {1, 4, 5}, {1, 6, 7}, {2, 4, 6}, {2, 5, 7}, {3, 4, 7}, {3, 5, 6}});
  const auto symmetries = Symmetries(yard);
  ASSERT_FALSE(symmetries.empty());
  for (const std::vector<int>& symmetry : symmetries) {
    EXPECT_EQ(std::set<int>(symmetry.begin(), symmetry.end()).size(), 7u);
  }
  EXPECT_EQ(EveryStateBySymmetry(yard, 1000).value().held.size(), 2u);
}

TEST(States, TooManyAreRefused) {
  const Yard yard = LoadYard("hgx-h100", 1).value();
  EXPECT_EQ(EveryState(yard, 676).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(EveryState(yard, 677).ok());
}

}  // namespace
}  // namespace switchyard::bench
