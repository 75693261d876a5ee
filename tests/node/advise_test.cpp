// SPDX-License-Identifier: Apache-2.0
// `advise` changes nothing: seen from Fabric Manager's end of the wire, whatever happens around it.
#include <gmock/gmock.h>

#include "tests/node/node_test.h"

namespace switchyard::sim {
namespace {

class AdviseTest : public NodeTest {
 protected:
  static void ExpectOnlyReads(const std::map<WireCall, int>& calls) {
    EXPECT_GT(calls.count(WireCall::kListPartitions), 0u) << "it must have asked at all";
    for (const WireCall change :
         {WireCall::kActivate, WireCall::kDeactivate, WireCall::kSetActivated}) {
      EXPECT_EQ(calls.count(change), 0u) << static_cast<int>(change);
    }
  }
};

TEST_F(AdviseTest, NeverActivatesDeactivatesOrSetsWhateverHappens) {
  MakeNode();
  ASSERT_TRUE(node_->fm().SetActive({5}).ok());
  StartAgent({{"fabric.restart", "warm"}});
  WaitForLog("event=fabric_up");
  EXPECT_TRUE(AddPod("a", 2).admitted);
  EXPECT_TRUE(AddPod("b", 1).admitted);
  EXPECT_EQ(node_->fm().active(), std::set<int>{5});

  // Warm: the list is what it would have to send in `enforce`.
  ASSERT_TRUE(node_->fm().Restart(FabricManager::Kind::kWarm).ok());
  WaitForLog("event=fabric_down");
  EXPECT_TRUE(AddPod("c", 2).admitted);
  EXPECT_TRUE(node_->fm().waiting());
  ASSERT_TRUE(node_->AdvanceClock(FabricManager::kWindow).ok());
  ASSERT_TRUE(node_->fm().AwaitStopped(kPatience));
  agent_->Mark();
  ASSERT_TRUE(node_->fm().Restart(FabricManager::Kind::kCold).ok());
  WaitForLog("event=fabric_up");
  ASSERT_TRUE(node_->kubelet().RemovePod("default", "a"));
  EXPECT_TRUE(AddPod("d", 2).admitted);
  EXPECT_EQ(agent_->Stop(), 0);
  EXPECT_TRUE(node_->fm().active().empty());
  ExpectOnlyReads(node_->fm().calls());
}

}  // namespace
}  // namespace switchyard::sim
