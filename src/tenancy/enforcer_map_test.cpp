// SPDX-License-Identifier: Apache-2.0
// The module map changes under live tenancies: what was granted stays what it was.
#include <gmock/gmock.h>

#include "fabric/fabric_answer.h"
#include "tenancy/enforcer.h"
#include "tenancy/testing/enforcer_fixture.h"

namespace switchyard::tenancy {
namespace {

using testing::At;
using ::testing::Contains;
using testing::DeviceAt;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class EnforcerMapTest : public testing::EnforcerFixture {
 protected:
  EnforcerMapTest() { Start(); }
  // GPU m is module `modules[m - 1]` by the map of now; 0: none.
  void SetMap(const std::vector<int>& modules) {
    Board board;
    for (int m = 1; m <= 8; ++m) {
      const int module = modules[static_cast<size_t>(m) - 1];
      fabric::ModuleSet its;
      if (module != 0) its.Insert(module);
      board.devices.push_back({At(m), its, module != 0, DeviceAt(m)});
    }
    enforcer_->ObserveBoard(std::move(board), std::make_shared<const fabric::ModuleMap>());
  }
  void LoseMap() { SetMap(std::vector<int>(8, 0)); }
};

TEST_F(EnforcerMapTest, AHeldTenancyOutlivesItsMap) {
  ASSERT_TRUE(Acquire({1, 3}).ok());
  Hold({1, 3});
  LoseMap();
  Turns(30);
  EXPECT_THAT(fabric_.Active(), ElementsAre(3));
  EXPECT_THAT(events_.TakeNames(), Contains("module_map_differs"));
}

TEST_F(EnforcerMapTest, AListedTenancyOutlivesItsMap) {
  ASSERT_TRUE(Acquire({1, 3}).ok());
  Assign({1, 3}, "default/a");
  LoseMap();
  Turns(30);
  EXPECT_THAT(fabric_.Active(), ElementsAre(3));
}

TEST_F(EnforcerMapTest, ATenancyOfNobodyEndsWithoutAMap) {
  ASSERT_TRUE(Acquire({1, 3}).ok());
  LoseMap();
  Turns(30);
  EXPECT_THAT(fabric_.Active(), IsEmpty());
}

TEST_F(EnforcerMapTest, AnotherMapDoesNotGiveAwayWhatIsHeld) {
  ASSERT_TRUE(Acquire({1, 3}).ok());
  Hold({1, 3});
  SetMap({2, 1, 4, 3, 5, 6, 7, 8});
  Turns(30);
  EXPECT_THAT(fabric_.Active(), ElementsAre(3));
  const Result<Acquired> others = Acquire({2, 4});  // modules 1 and 3 by this map
  EXPECT_FALSE(others.ok());
  const Result<Acquired> again = Acquire({1, 3});
  EXPECT_THAT(std::string(again.status().message()), HasSubstr("was granted in tenancy"));
  EXPECT_THAT(fabric_.Active(), ElementsAre(3));
}

TEST_F(EnforcerMapTest, AForeignPartitionOfAGpuWithoutModuleIdIsNotTakenWhileItMayBeHeld) {
  fabric_.SetActive(3, true);  // modules 1 and 3
  Probe();
  SetMap({1, 2, 0, 4, 5, 6, 7, 8});
  Hold({3});
  EXPECT_FALSE(Acquire({1}).ok());
  EXPECT_THAT(fabric_.Active(), ElementsAre(3));
  holders_.held.clear();
  EXPECT_TRUE(Acquire({1}).ok());
}

TEST_F(EnforcerMapTest, WithoutJournalAndMapNothingIsSentWhileAGpuIsHeld) {
  restart_is_warm_ = true;
  ASSERT_TRUE(Acquire({1, 3}).ok());
  Hold({1, 3});
  journal_.records.clear();
  fabric_.down = absl::UnavailableError("down");
  Start();
  enforcer_->ObserveRememberedList(testing::ListOf({}));
  LoseMap();
  fabric_.down = fabric::WithFabricAnswer(absl::UnavailableError("still initialising"),
                                          {"fmGetSupportedFabricPartitions", -8});
  fabric_.failures.push_back({OkStatus(), true});
  Probe();
  EXPECT_FALSE(fabric_.sent.has_value());
  EXPECT_THAT(events_.TakeNames(), Contains("active_list_failed"));
}

TEST_F(EnforcerMapTest, ContainersGoOnStartingWithoutAMap) {
  ASSERT_TRUE(Acquire({1, 3}).ok());
  LoseMap();
  const std::vector<TenancyDevice> granted = {DeviceAt(1), DeviceAt(3)};
  EXPECT_TRUE(enforcer_->PreStart(granted).ok());
  const std::vector<TenancyDevice> others = {DeviceAt(1), DeviceAt(2)};
  EXPECT_THAT(std::string(enforcer_->PreStart(others).message()),
              HasSubstr("in no tenancy together"));
}

}  // namespace
}  // namespace switchyard::tenancy
