// SPDX-License-Identifier: Apache-2.0
#include "tenancy/enforcer.h"

#include <gmock/gmock.h>

#include "tenancy/testing/enforcer_fixture.h"

namespace switchyard::tenancy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using State = TenancyState;
using StateMap = std::map<int, State>;
using testing::At;
using testing::DeviceAt;

class EnforcerTest : public testing::EnforcerFixture {
 protected:
  EnforcerTest() { Start(); }
  void ExpectRefused(const Result<Acquired>& result, absl::StatusCode code,
                     const std::vector<std::string>& words) {
    EXPECT_EQ(result.status().code(), code) << result.status();
    for (const std::string& word : words)
      EXPECT_THAT(std::string(result.status().message()), HasSubstr(word));
  }
};

// ---- acquire -----------------------------------------------------------------------------------

TEST_F(EnforcerTest, ASetThatIsAPartitionIsActivatedJournalFirst) {
  fabric_.before_change = [&] {
    EXPECT_EQ(States(), (StateMap{{3, State::kActivating}})) << "the journal comes first";
  };
  const auto acquired = Acquire({1, 3});
  ASSERT_TRUE(acquired.ok()) << acquired.status();
  EXPECT_EQ(acquired->partition, 3);
  EXPECT_TRUE(acquired->begun);
  EXPECT_THAT(fabric_.Active(), ElementsAre(3));
  EXPECT_EQ(States(), (StateMap{{3, State::kActive}}));
  EXPECT_EQ(enforcer_->BusyModules(), (fabric::ModuleSet{1, 3}));
  EXPECT_EQ(holders_.looks, 0) << "nothing in the way: the devices' own word is enough";
}

TEST_F(EnforcerTest, ASingleGpuIsAPartitionToo) {
  ASSERT_TRUE(Acquire({5}).ok());
  EXPECT_THAT(fabric_.Active(), ElementsAre(11));
}

TEST_F(EnforcerTest, ASetThatIsNoneIsRefusedWithTheNearest) {
  ExpectRefused(Acquire({1, 2}), absl::StatusCode::kInvalidArgument,
                {"modules 1,2 are no partition", "3 (1,3), 4 (2,4)"});
  EXPECT_THAT(fabric_.calls, IsEmpty());
  EXPECT_EQ(enforcer_->View().refusals.at("no_partition"), 1u);
}

TEST_F(EnforcerTest, AnUnmappedGpuIsRefused) {
  TenancyRequest request = For({1});
  request.devices.push_back(DeviceAt(9));
  ExpectRefused(enforcer_->Acquire(request), absl::StatusCode::kFailedPrecondition,
                {At(9).ToString(), "switchyard mapping set"});
}

TEST_F(EnforcerTest, WithoutFabricManagerNothingIsGranted) {
  fabric_.down = absl::UnavailableError("connection refused");
  Probe();
  ExpectRefused(Acquire({1}), absl::StatusCode::kUnavailable, {"connection refused"});
  EXPECT_THAT(journal_.records, IsEmpty());
  EXPECT_EQ(enforcer_->Blocked().size(), 8u);
}

TEST_F(EnforcerTest, WithoutTheJournalNothingIsGranted) {
  journal_.writes = absl::ResourceExhaustedError("disk full");
  ExpectRefused(Acquire({1, 3}), absl::StatusCode::kResourceExhausted, {"disk full", "journal"});
  EXPECT_THAT(fabric_.calls, IsEmpty()) << "the journal comes first";
  EXPECT_EQ(enforcer_->Blocked().size(), 8u);
  journal_.writes = OkStatus();
  Turn();
  EXPECT_TRUE(Acquire({1, 3}).ok());
}

TEST_F(EnforcerTest, AJournalThatIsNewerStopsEverything) {
  journal_.load = absl::FailedPreconditionError("version 2 is newer than 1");
  Start();
  EXPECT_EQ(loaded_.code(), absl::StatusCode::kFailedPrecondition);
  ExpectRefused(Acquire({1}), absl::StatusCode::kFailedPrecondition, {"newer"});
  Turn();
  EXPECT_THAT(fabric_.calls, IsEmpty());
}

TEST_F(EnforcerTest, AFailedActivationLeavesNothing) {
  fabric_.failures.push_back({absl::InvalidArgumentError("not in the table"), false});
  ExpectRefused(Acquire({1, 3}), absl::StatusCode::kInvalidArgument,
                {"activating partition 3 (modules 1,3)", "not in the table"});
  EXPECT_THAT(journal_.records, IsEmpty());
  EXPECT_TRUE(Acquire({1, 3}).ok());
}

TEST_F(EnforcerTest, ALateActivationIsReleasedByTheReconciler) {
  fabric_.failures.push_back({absl::DeadlineExceededError("no answer in 15 s"), true});
  ExpectRefused(Acquire({1, 3}), absl::StatusCode::kDeadlineExceeded, {"no answer"});
  EXPECT_EQ(States(), (StateMap{{3, State::kActivating}})) << "nobody knows what came of it";
  Turn();
  EXPECT_THAT(fabric_.Active(), IsEmpty());
  EXPECT_THAT(journal_.records, IsEmpty());
}

TEST_F(EnforcerTest, AnActivationThatNeverCameIsForgottenOnceItCantComeAnyMore) {
  fabric_.failures.push_back({absl::DeadlineExceededError("no answer in 15 s"), false});
  ASSERT_FALSE(Acquire({1, 3}).ok());
  Turn();
  EXPECT_EQ(States(), (StateMap{{3, State::kActivating}})) << "it may still come";
  ExpectRefused(Acquire({1, 2, 3, 4}), absl::StatusCode::kUnavailable, {"did not say"});
  Turn();
  EXPECT_THAT(journal_.records, IsEmpty());
  EXPECT_TRUE(Acquire({1, 2, 3, 4}).ok());
}

TEST_F(EnforcerTest, ASuccessThatTheListDoesNotShowIsAnError) {
  fabric_.failures.push_back({OkStatus(), false});
  ExpectRefused(Acquire({1, 3}), absl::StatusCode::kUnknown, {"still has the partition inactive"});
}

TEST_F(EnforcerTest, UndoTakesBackWhatWasBegun) {
  const auto acquired = Acquire({1, 3});
  ASSERT_TRUE(acquired.ok());
  enforcer_->Undo(*acquired);
  EXPECT_THAT(fabric_.Active(), IsEmpty());
  EXPECT_THAT(journal_.records, IsEmpty());
}

TEST_F(EnforcerTest, UndoNeverTakesWhatIsHeld) {
  const auto acquired = Acquire({1, 3});
  ASSERT_TRUE(acquired.ok());
  Hold({3});
  enforcer_->Undo(*acquired);
  EXPECT_THAT(fabric_.Active(), ElementsAre(3));
  holders_.held.clear();
  Turn();
  EXPECT_THAT(fabric_.Active(), IsEmpty()) << "nobody was given it, so no grace is needed";
}

// ---- the same set, and overlaps ----------------------------------------------------------------

TEST_F(EnforcerTest, AnInitContainersDevicesGoToTheMainContainer) {
  const auto init = Acquire({1, 3});
  const auto main = Acquire({1, 3});
  ASSERT_TRUE(main.ok()) << main.status();
  EXPECT_EQ(main->tenancy, init->tenancy);
  EXPECT_FALSE(main->begun);
  EXPECT_THAT(fabric_.calls, ElementsAre("+3"));
}

TEST_F(EnforcerTest, AnInitContainersLargerSetIsReleasedForTheMainContainer) {
  ASSERT_TRUE(Acquire({1, 2, 3, 4}).ok());
  ASSERT_TRUE(Acquire({1, 3}).ok());
  EXPECT_THAT(fabric_.calls, ElementsAre("+1", "-1", "+3"));
  EXPECT_EQ(States(), (StateMap{{3, State::kActive}}));
}

TEST_F(EnforcerTest, ADeviceHandedOutTwiceIsRefusedNamingThePod) {
  ASSERT_TRUE(Acquire({1, 3}).ok());
  Assign({1, 3}, "default/a");
  Turn();
  ExpectRefused(Acquire({1, 3}), absl::StatusCode::kAlreadyExists, {"pod default/a"});
  ExpectRefused(Acquire({1}), absl::StatusCode::kAlreadyExists, {"pod default/a"});
  EXPECT_THAT(fabric_.Active(), ElementsAre(3));
}

TEST_F(EnforcerTest, AReCreatedPodGetsThemWithoutGrace) {
  ASSERT_TRUE(Acquire({1, 3}).ok());
  Assign({1, 3}, "default/a");
  Turn();
  Unassign({1, 3});  // by Get of now; the last List still has them
  ASSERT_TRUE(Acquire({1, 3}).ok());
  EXPECT_THAT(fabric_.calls, ElementsAre("+3"));
  EXPECT_FALSE(journal_.records.begin()->second.owner.has_value()) << "whose it is must be learned";
}

TEST_F(EnforcerTest, WithoutGetNobodysDevicesAreTaken) {
  ASSERT_TRUE(Acquire({1, 3}).ok());
  Assign({1, 3}, "default/a");
  Turn();
  source_.answer = absl::UnimplementedError("Get");
  ExpectRefused(Acquire({1, 3}), absl::StatusCode::kUnavailable,
                {"pod default/a", "did not say in time"});
}

TEST_F(EnforcerTest, AHolderThatIsJustExitingIsWaitedFor) {
  ASSERT_TRUE(Acquire({1, 3}).ok());
  Hold({1});
  const absl::Duration began = clock_.Monotonic();
  holders_.while_waiting = [&] {
    if (clock_.Monotonic() - began >= absl::Seconds(2)) holders_.held.clear();
  };
  ASSERT_TRUE(Acquire({1, 2, 3, 4}).ok());
  EXPECT_THAT(fabric_.calls, ElementsAre("+3", "-3", "+1"));
}

TEST_F(EnforcerTest, AHolderThatStaysIsNamed) {
  ASSERT_TRUE(Acquire({1, 3}).ok());
  Hold({1});
  const absl::Duration began = clock_.Monotonic();
  ExpectRefused(Acquire({1, 3}), absl::StatusCode::kAlreadyExists,
                {"PID 4711 (qemu-system-x86) of pod 1", "5s"});
  EXPECT_GE(clock_.Monotonic() - began, options_.wait);
  EXPECT_LT(clock_.Monotonic() - began, options_.wait + absl::Milliseconds(200));
  EXPECT_THAT(fabric_.calls, ElementsAre("+3"));
}

TEST_F(EnforcerTest, AHolderThatOutlivesItsPodIsNamed) {
  ASSERT_TRUE(Acquire({1, 3}).ok());
  Assign({1, 3}, "default/old");
  Turn();
  Unassign({1, 3});
  Hold({1, 3});
  ExpectRefused(Acquire({1, 3}), absl::StatusCode::kAlreadyExists,
                {"of pod default/old) are still held open after 5s"});
  EXPECT_EQ(enforcer_->View().refusals.at("held"), 1u);
}

TEST_F(EnforcerTest, AHeldDeviceOfNoTenancyIsRefused) {
  Hold({5});
  ExpectRefused(Acquire({5}), absl::StatusCode::kAlreadyExists, {"PID 4711"});
  holders_.held.clear();
  holders_.busy.insert(At(5));
  ExpectRefused(Acquire({5}), absl::StatusCode::kAlreadyExists, {"no process shows it"});
}

// ---- claims ------------------------------------------------------------------------------------

TEST_F(EnforcerTest, AClaimIsItsOwnersUntilItGivesItBack) {
  TenancyRequest claim = For({1, 3});
  claim.owner = Owner{"claim", "uid-1"};
  claim.until_released = true;
  const auto first = enforcer_->Acquire(claim);
  ASSERT_TRUE(first.ok());
  Hold({1, 3});
  const auto again = enforcer_->Acquire(claim);
  ASSERT_TRUE(again.ok()) << "Prepare is idempotent: " << again.status();
  EXPECT_EQ(again->tenancy, first->tenancy);
  EXPECT_EQ(enforcer_->ReleaseOwner(*claim.owner).code(), absl::StatusCode::kAlreadyExists);
  holders_.held.clear();
  Turns(20);
  EXPECT_THAT(fabric_.Active(), ElementsAre(3)) << "no view ends a claim";
  ExpectRefused(Acquire({1}), absl::StatusCode::kAlreadyExists, {"claim uid-1"});
  EXPECT_TRUE(enforcer_->ReleaseOwner(*claim.owner).ok());
  EXPECT_TRUE(enforcer_->ReleaseOwner(*claim.owner).ok());
  EXPECT_THAT(fabric_.Active(), IsEmpty());
}

// ---- release -----------------------------------------------------------------------------------

TEST_F(EnforcerTest, ATenancyIsReleasedOnceTwoViewsAgreeForTheGrace) {
  ASSERT_TRUE(Acquire({1, 3}).ok());
  Assign({1, 3}, "default/a");
  Hold({1, 3});
  Turns(20);
  EXPECT_THAT(fabric_.Active(), ElementsAre(3));
  EXPECT_EQ(journal_.records.begin()->second.owner, (Owner{"pod", "default/a"}));
  Unassign({1, 3});
  Turns(20);
  EXPECT_THAT(fabric_.Active(), ElementsAre(3)) << "held: one view is not enough";
  holders_.held.clear();
  Turns(7);
  EXPECT_THAT(fabric_.Active(), ElementsAre(3)) << "60 s are not over";
  Turn();
  EXPECT_THAT(fabric_.Active(), IsEmpty());
  EXPECT_THAT(journal_.records, IsEmpty());
}

TEST_F(EnforcerTest, AViewThatFlickersBeginsTheGraceAnew) {
  ASSERT_TRUE(Acquire({1, 3}).ok());
  Turns(7);
  Assign({1}, "default/a");
  Turn();
  Unassign({1});
  Turns(7);
  EXPECT_THAT(fabric_.Active(), ElementsAre(3));
  Turn();
  EXPECT_THAT(fabric_.Active(), IsEmpty());
}

TEST_F(EnforcerTest, AnUnreadableProcessHoldsEverything) {
  ASSERT_TRUE(Acquire({1, 3}).ok());
  holders_.status = absl::PermissionDeniedError("not the host's PIDs");
  Turns(20);
  EXPECT_THAT(fabric_.Active(), ElementsAre(3));
}

TEST_F(EnforcerTest, AKubeletThatDoesNotAnswerReleasesNothing) {
  ASSERT_TRUE(Acquire({1, 3}).ok());
  Turn();
  source_.answer = absl::UnavailableError("kubelet is down");
  Turns(20);
  EXPECT_THAT(fabric_.Active(), ElementsAre(3));
}

TEST_F(EnforcerTest, AGroupThatIsBusyIsNotReleased) {
  ASSERT_TRUE(Acquire({1, 3}).ok());
  holders_.busy.insert(At(3));
  Turns(20);
  EXPECT_THAT(fabric_.Active(), ElementsAre(3));
}

TEST_F(EnforcerTest, TheOperatorReleasesByHandButNeverWhatIsHeld) {
  const auto acquired = Acquire({1, 3});
  ASSERT_TRUE(acquired.ok());
  Assign({1, 3}, "default/a");
  Turn();
  EXPECT_EQ(enforcer_->ReleaseById(1, true).code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(enforcer_->ReleaseById(acquired->tenancy, false).message()),
              HasSubstr("kubelet lists it"));
  Hold({1});
  EXPECT_EQ(enforcer_->ReleaseById(acquired->tenancy, true).code(),
            absl::StatusCode::kAlreadyExists);
  holders_.held.clear();
  EXPECT_TRUE(enforcer_->ReleaseById(acquired->tenancy, true).ok());
  EXPECT_THAT(fabric_.Active(), IsEmpty());
}

TEST_F(EnforcerTest, ADrainingNodeTakesNobody) {
  ASSERT_TRUE(enforcer_->Drain(true).ok());
  ExpectRefused(Acquire({1}), absl::StatusCode::kFailedPrecondition, {"drained"});
  ASSERT_TRUE(enforcer_->Drain(false).ok());
  EXPECT_TRUE(Acquire({1}).ok());
}

// ---- foreign partitions ------------------------------------------------------------------------

TEST_F(EnforcerTest, AForeignPartitionOfOnePodIsAdopted) {
  fabric_.SetActive(3, true);
  Assign({1, 3}, "default/a");
  Start();
  List();
  enforcer_->Reconcile();
  EXPECT_EQ(States(), (StateMap{{3, State::kActive}}));
  EXPECT_TRUE(journal_.records.begin()->second.adopted);
  EXPECT_EQ(journal_.records.begin()->second.owner, (Owner{"pod", "default/a"}));
  EXPECT_THAT(fabric_.calls, IsEmpty());
}

TEST_F(EnforcerTest, AForeignPartitionIsLeftUntilItIsInTheWay) {
  fabric_.SetActive(3, true);
  Start();
  Turns(20);
  EXPECT_THAT(fabric_.Active(), ElementsAre(3));
  EXPECT_THAT(journal_.foreign, ElementsAre(fabric::ModuleSet{1, 3}));
  ASSERT_TRUE(Acquire({1}).ok()) << "it only overlaps: deactivated";
  EXPECT_THAT(fabric_.calls, ElementsAre("-3", "+7"));
  EXPECT_THAT(journal_.foreign, IsEmpty());
}

TEST_F(EnforcerTest, AForeignPartitionThatIsAskedForIsAdopted) {
  fabric_.SetActive(3, true);
  Start();
  const auto acquired = Acquire({1, 3});
  ASSERT_TRUE(acquired.ok());
  EXPECT_TRUE(acquired->begun);
  EXPECT_THAT(fabric_.calls, IsEmpty());
  EXPECT_EQ(States(), (StateMap{{3, State::kActive}}));
}

TEST_F(EnforcerTest, AForeignPartitionThatIsHeldOrListedIsRefused) {
  fabric_.SetActive(1, true);
  Start();
  Hold({4});
  ExpectRefused(Acquire({1, 3}), absl::StatusCode::kAlreadyExists, {"PID 4711"});
  holders_.held.clear();
  Assign({4}, "default/a");
  List();
  ExpectRefused(Acquire({1, 3}), absl::StatusCode::kAlreadyExists, {"pod default/a"});
  EXPECT_THAT(fabric_.Active(), ElementsAre(1));
}

}  // namespace
}  // namespace switchyard::tenancy
