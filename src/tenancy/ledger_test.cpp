// SPDX-License-Identifier: Apache-2.0
#include "tenancy/ledger.h"

#include <gmock/gmock.h>

#include "absl/strings/match.h"
#include "tenancy/testing/enforcer_fixture.h"

namespace switchyard::tenancy {
namespace {

using ::testing::HasSubstr;
using State = TenancyState;
using fabric::ModuleSet;

TenancyRecord Record(std::uint64_t id, State state, const std::vector<int>& modules) {
  TenancyRecord record;
  record.id = id;
  record.state = state;
  for (const int m : modules) {
    record.modules.Insert(m);
    record.devices.push_back(testing::DeviceAt(m));
  }
  return record;
}

std::string Refusal(const Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
  return std::string(status.message());
}

TEST(LedgerTest, AGpuIsInOneTenancy) {
  Ledger ledger;
  ledger.Put(Record(1, State::kActive, {1, 3}));
  EXPECT_THAT(Refusal(ledger.CheckPut(Record(2, State::kActivating, {1, 2, 3, 4}))),
              HasSubstr("modules 1,3 are in tenancy 1"));
  EXPECT_TRUE(ledger.CheckPut(Record(2, State::kActivating, {2, 4})).ok());
}

TEST(LedgerTest, AGroupGoesAsAWhole) {
  Ledger ledger;
  ledger.Put(Record(1, State::kActive, {1}));
  TenancyRecord other = Record(2, State::kActivating, {2});
  other.devices[0].functions.push_back({testing::At(1), "", std::nullopt});
  EXPECT_THAT(Refusal(ledger.CheckPut(other)), HasSubstr("PCI function"));
}

TEST(LedgerTest, OnlyTheKnownSteps) {
  constexpr State kAll[] = {State::kPlanned, State::kActivating, State::kActive, State::kReleasing};
  const std::set<std::pair<State, State>> allowed = {
      {State::kPlanned, State::kActivating},   {State::kActivating, State::kActive},
      {State::kActivating, State::kReleasing}, {State::kActive, State::kActivating},
      {State::kActive, State::kReleasing},     {State::kReleasing, State::kActive}};
  for (const State from : kAll) {
    for (const State to : kAll) {
      Ledger ledger;
      ASSERT_TRUE(ledger.Restore(Record(1, from, {1})).ok());
      EXPECT_EQ(ledger.CheckPut(Record(1, to, {1})).ok(),
                from == to || allowed.contains({from, to}))
          << TenancyStateName(from) << " to " << TenancyStateName(to);
    }
    Ledger ledger;
    EXPECT_EQ(ledger.CheckPut(Record(1, from, {1})).ok(), from != State::kReleasing);
    ASSERT_TRUE(ledger.Restore(Record(1, from, {1})).ok());
    EXPECT_EQ(ledger.CheckRemove(1).ok(), from != State::kActive);
  }
}

TEST(LedgerTest, ModulesNeverChange) {
  Ledger ledger;
  ledger.Put(Record(1, State::kActive, {1}));
  EXPECT_THAT(Refusal(ledger.CheckPut(Record(1, State::kActive, {1, 3}))), HasSubstr("change"));
  EXPECT_THAT(Refusal(ledger.CheckPut(Record(2, State::kActive, {}))), HasSubstr("no module"));
}

class ActuationTest : public ::testing::Test {
 protected:
  ActuationTest() : table_(fabric::MakeTable(testing::H100({3}), fabric::ModuleMap())) {}
  const fabric::Partition& Of(int id) { return *table_.Find(id); }
  Ledger ledger_;
  fabric::PartitionTable table_;
};

TEST_F(ActuationTest, NothingIsActivatedThatIsNotInTheJournal) {
  EXPECT_THAT(Refusal(CheckActivate(ledger_, table_, 1, Of(4))), HasSubstr("not in the journal"));
  ledger_.Put(Record(1, State::kPlanned, {2, 4}));
  EXPECT_THAT(Refusal(CheckActivate(ledger_, table_, 1, Of(4))), HasSubstr("planned"));
  ledger_.Put(Record(1, State::kActivating, {2, 4}));
  EXPECT_TRUE(CheckActivate(ledger_, table_, 1, Of(4)).ok());
  EXPECT_THAT(Refusal(CheckActivate(ledger_, table_, 1, Of(5))), HasSubstr("not its modules"));
}

TEST_F(ActuationTest, NothingIsActivatedBesideAnotherActivePartition) {
  ledger_.Put(Record(1, State::kActivating, {1}));
  EXPECT_THAT(Refusal(CheckActivate(ledger_, table_, 1, Of(7))),
              HasSubstr("partition 3 is active and shares modules 1"));
}

TEST_F(ActuationTest, NothingIsDeactivatedThatMayBeHeld) {
  ASSERT_TRUE(ledger_.Restore(Record(1, State::kReleasing, {1, 3})).ok());
  EXPECT_TRUE(CheckDeactivate(ledger_, {}, {}, Of(3)).ok());
  EXPECT_THAT(Refusal(CheckDeactivate(ledger_, {}, ModuleSet{3}, Of(3))), HasSubstr("held open"));
}

TEST_F(ActuationTest, NothingIsDeactivatedWithoutARelease) {
  EXPECT_THAT(Refusal(CheckDeactivate(ledger_, {}, {}, Of(3))), HasSubstr("no release of it"));
  EXPECT_TRUE(CheckDeactivate(ledger_, {ModuleSet{1, 3}}, {}, Of(3)).ok());
  ledger_.Put(Record(1, State::kActive, {1, 3}));
  EXPECT_THAT(Refusal(CheckDeactivate(ledger_, {ModuleSet{1, 3}}, {}, Of(3))),
              HasSubstr("no release of it"));
}

}  // namespace
}  // namespace switchyard::tenancy
