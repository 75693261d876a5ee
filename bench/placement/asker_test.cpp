// SPDX-License-Identifier: Apache-2.0
#include "bench/placement/asker.h"

#include <gmock/gmock.h>

namespace switchyard::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// On hgx-h100 a partition's position is its id. 3 to 6 are the pairs {1,3} {2,4} {5,7} {6,8}, 14 is
// module 8.
class Asked : public ::testing::Test {
 protected:
  const Yard yard_ = LoadYard("hgx-h100", 1).value();
  Asker asker_{yard_};
  static constexpr Held kModule8 = Yard::Bit(14);
};

TEST_F(Asked, ThePolicyIsTheOneNamed) {
  EXPECT_EQ(asker_.Choose(fabric::Policy::kPack, kModule8, kModule8, 2), 5);
  EXPECT_EQ(asker_.Choose(fabric::Policy::kLowestId, kModule8, kModule8, 2), 3);
}

TEST_F(Asked, AllCandidatesAreWhatIsFree) {
  EXPECT_THAT(asker_.Candidates(kModule8, kModule8, 2), ElementsAre(3, 4, 5));
  EXPECT_THAT(asker_.Candidates(kModule8, kModule8, 8), IsEmpty());
}

TEST_F(Asked, AnActivePartitionThatNobodyHoldsWins) {
  EXPECT_EQ(asker_.Choose(fabric::Policy::kPack, 0, Yard::Bit(6), 2), 6);
  // And is forgotten once it is not active any more.
  EXPECT_EQ(asker_.Choose(fabric::Policy::kPack, 0, 0, 2), 3);
}

// Module 6's pair is still active, so a single keeps out of its way.
TEST_F(Asked, AStaleActivePartitionIsAvoided) {
  EXPECT_EQ(asker_.Choose(fabric::Policy::kPack, kModule8, kModule8, 1), 12);
  EXPECT_EQ(asker_.Choose(fabric::Policy::kPack, kModule8, kModule8 | Yard::Bit(2), 1), 7);
}

}  // namespace
}  // namespace switchyard::bench
