// SPDX-License-Identifier: Apache-2.0
#include "fabric/module_set.h"

#include <gtest/gtest.h>

namespace switchyard::fabric {
namespace {

TEST(ModuleSet, HoldsBothEndsOfTheRange) {
  ModuleSet set = {kMinModule, kMaxModule};
  EXPECT_EQ(set.size(), 2);
  EXPECT_TRUE(set.Contains(1));
  EXPECT_TRUE(set.Contains(16));
  EXPECT_FALSE(set.Contains(2));
  set.Erase(16);
  EXPECT_EQ(set, ModuleSet{1});
  EXPECT_EQ(ModuleSet::FirstN(16).size(), 16);
  EXPECT_EQ(ModuleSet::FirstN(0), ModuleSet());
}

TEST(ModuleSet, IsSaidInAscendingOrder) {
  EXPECT_EQ((ModuleSet{16, 3, 1}).ToString(), "1,3,16");
  EXPECT_EQ((ModuleSet{16, 3, 1}).ToVector(), (std::vector<ModuleId>{1, 3, 16}));
  EXPECT_EQ(ModuleSet().ToString(), "");
}

TEST(ModuleSet, AnswersLikeASet) {
  const ModuleSet quad = {1, 2, 3, 4};
  EXPECT_TRUE(quad.ContainsAll({2, 4}));
  EXPECT_TRUE(quad.ContainsAll({}));
  EXPECT_FALSE(quad.ContainsAll({4, 5}));
  EXPECT_TRUE(quad.Overlaps({4, 5}));
  EXPECT_FALSE(quad.Overlaps({5, 6}));
  EXPECT_EQ(quad - ModuleSet({4, 5}), (ModuleSet{1, 2, 3}));
  EXPECT_EQ(quad & ModuleSet({4, 5}), ModuleSet{4});
  EXPECT_EQ(quad | ModuleSet({4, 5}), (ModuleSet{1, 2, 3, 4, 5}));
}

}  // namespace
}  // namespace switchyard::fabric
