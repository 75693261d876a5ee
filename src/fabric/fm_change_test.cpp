// SPDX-License-Identifier: Apache-2.0
// What libnvfm's code and the list read after the call mean together, for both generations' codes.
#include "fabric/fm_change.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "fabric/fabric_answer.h"
#include "fabric/fabric_control.h"
#include "fabric/nvfm_codes.h"

namespace switchyard::fabric {
namespace {

using absl::StatusCode;
using Kind = FabricChange::Kind;

const FabricAddress kAddress{"127.0.0.1:6666", false};

// Partitions 1 {1,2}, 3 {1}, 4 {2}, 5 {7}; these are active.
FabricList List(const std::set<int>& active) {
  FabricList list;
  list.max_partitions = 4;
  for (const auto& [id, gpus] : std::vector<std::pair<int, std::vector<unsigned>>>{
           {1, {1, 2}}, {3, {1}}, {4, {2}}, {5, {7}}}) {
    FabricPartition partition{id, active.contains(id), {}};
    for (const unsigned id_of_gpu : gpus) {
      partition.gpus.emplace_back();
      partition.gpus.back().physical_id = id_of_gpu;
    }
    list.partitions.push_back(partition);
  }
  return list;
}

FabricChange Change(Kind kind, std::vector<int> ids) { return {kind, std::move(ids)}; }

void ExpectDone(const FabricChange& change, nvfm::Return code, const std::set<int>& active) {
  const Result<FabricList> list = Settle(change, code, List(active), kAddress);
  ASSERT_TRUE(list.ok()) << change.ToString() << ", " << code << ": " << list.status();
  EXPECT_EQ(*list, List(active));
}

void ExpectError(const FabricChange& change, nvfm::Return code, Result<FabricList> list,
                 StatusCode status, absl::string_view says, std::optional<int> fm_code) {
  const Status error = Settle(change, code, std::move(list), kAddress).status();
  EXPECT_EQ(error.code(), status) << change.ToString() << ", " << code << ": " << error;
  EXPECT_NE(error.message().find(says), absl::string_view::npos) << error;
  EXPECT_EQ(FabricCodeOf(error), fm_code) << error;
}

TEST(FmChange, SuccessIsWhatTheListShows) {
  ExpectDone(Change(Kind::kActivate, {3}), 0, {3, 4});
  ExpectDone(Change(Kind::kDeactivate, {3}), 0, {4});
  ExpectDone(Change(Kind::kSetActivated, {4, 3}), 0, {3, 4});
  ExpectDone(Change(Kind::kSetActivated, {}), 0, {});
}

TEST(FmChange, ASuccessThatChangedNothingIsAnError) {
  ExpectError(Change(Kind::kActivate, {3}), 0, List({4}), StatusCode::kUnknown,
              "does not show it (asked: activate partition 3; active: 4)", std::nullopt);
  ExpectError(Change(Kind::kDeactivate, {3}), 0, List({3}), StatusCode::kUnknown, "active: 3",
              std::nullopt);
  ExpectError(Change(Kind::kSetActivated, {3}), 0, List({3, 4}), StatusCode::kUnknown,
              "active: 3, 4", std::nullopt);
  ExpectError(Change(Kind::kSetActivated, {3, 4}), 0, List({3}), StatusCode::kUnknown,
              "asked: set the active partitions to 3, 4", std::nullopt);
  ExpectError(Change(Kind::kActivate, {99}), 0, List({}), StatusCode::kUnknown, "none",
              std::nullopt);
}

TEST(FmChange, AlreadyAsAskedIsASuccessInEveryGenerationsCode) {
  for (const nvfm::Return code : {-7, -16, -17, -23}) {
    ExpectDone(Change(Kind::kActivate, {1}), code, {1});
    ExpectDone(Change(Kind::kSetActivated, {1}), code, {1});
  }
  for (const nvfm::Return code : {-4, -13, -18}) {
    ExpectDone(Change(Kind::kDeactivate, {1}), code, {3});
  }
}

TEST(FmChange, AHolderIsNamedFromTheList) {
  for (const nvfm::Return code : {-7, -12, -24, -17}) {
    ExpectError(Change(Kind::kActivate, {1}), code, List({4, 5}), StatusCode::kAlreadyExists,
                "the active partition 4 has GPU 2 of partition 1", code);
    ExpectError(Change(Kind::kActivate, {3}), code, List({1}), StatusCode::kAlreadyExists,
                "the active partition 1 has GPU 1 of partition 3", code);
  }
}

TEST(FmChange, InUseThatTheListContradictsIsNeitherSuccessNorAHolder) {
  ExpectError(Change(Kind::kActivate, {1}), -7, List({5}), StatusCode::kInternal,
              "does not agree (active: 5)", -7);
  ExpectError(Change(Kind::kDeactivate, {3}), -4, List({3}), StatusCode::kInternal,
              "does not agree (active: 3)", -4);
  ExpectError(Change(Kind::kDeactivate, {3}), -18, List({3}), StatusCode::kInternal, "-18", -18);
}

TEST(FmChange, APartitionThatIsNotInTheTableIsNamed) {
  ExpectError(Change(Kind::kActivate, {99}), -1, List({}), StatusCode::kInvalidArgument,
              "no partition 99", -1);
  ExpectError(Change(Kind::kDeactivate, {99}), -4, List({}), StatusCode::kInvalidArgument,
              "no partition 99", -4);
  ExpectError(Change(Kind::kSetActivated, {3, 98, 99}), -1, List({}), StatusCode::kInvalidArgument,
              "no partition 98, 99", -1);
  ExpectError(Change(Kind::kActivate, {3}), -1, List({}), StatusCode::kInternal, "BADPARAM", -1);
}

TEST(FmChange, ATimeoutMayHaveDoneItsWork) {
  for (const nvfm::Return code : {-5, -8, -15, -22}) {
    ExpectDone(Change(Kind::kActivate, {3}), code, {3});
    ExpectError(Change(Kind::kActivate, {3}), code, List({}), StatusCode::kUnavailable,
                "asked again", code);
    ExpectDone(Change(Kind::kDeactivate, {3}), code, {});
    ExpectError(Change(Kind::kDeactivate, {3}), code, List({3}), StatusCode::kUnavailable, "",
                code);
  }
}

// The rule over all codes and states: only success, "already" and "retry" can end well, and only
// with the right list; nothing else is ever a success.
TEST(FmChange, NoOtherCodeIsEverASuccess) {
  const std::set<nvfm::Return> may_activate = {0, -5, -7, -8, -12, -15, -16, -17, -22, -23, -24};
  const std::set<nvfm::Return> may_deactivate = {0, -4, -5, -8, -13, -15, -18, -22};
  for (nvfm::Return code = -40; code <= 5; ++code) {
    for (const std::set<int>& active : {std::set<int>{}, {3}, {4}, {1}}) {
      const bool activated =
          Settle(Change(Kind::kActivate, {3}), code, List(active), kAddress).ok();
      EXPECT_EQ(activated, may_activate.contains(code) && active.contains(3)) << code;
      const bool deactivated =
          Settle(Change(Kind::kDeactivate, {3}), code, List(active), kAddress).ok();
      EXPECT_EQ(deactivated, may_deactivate.contains(code) && !active.contains(3)) << code;
      const bool set = Settle(Change(Kind::kSetActivated, {3}), code, List(active), kAddress).ok();
      EXPECT_EQ(set, may_activate.contains(code) && active == std::set<int>{3}) << code;
    }
  }
}

TEST(FmChange, AFaultOfTheFabricIsAnErrorThatSaysWhatIsActive) {
  ExpectError(Change(Kind::kActivate, {3}), -10, List({3}), StatusCode::kInternal,
              "asked to activate partition 3 (active after it: 3): -10 (NVLINK_ERROR)", -10);
  ExpectError(Change(Kind::kActivate, {3}), -99, List({3}), StatusCode::kInternal,
              "-99 (not a documented code)", -99);
}

TEST(FmChange, AnUnreadableListAfterASuccessLeavesItUnknown) {
  const Status gone =
      WithFabricAnswer(absl::UnavailableError("gone"), {"fmGetSupportedFabricPartitions", -9});
  ExpectError(Change(Kind::kActivate, {3}), 0, gone, StatusCode::kUnavailable, "succeeded", -9);
  ExpectError(
      Change(Kind::kActivate, {3}), 0, absl::DataLossError("17 GPUs"), StatusCode::kUnknown,
      "fmActivateFabricPartition succeeded, and the list that must confirm it can't be read: "
      "17 GPUs",
      std::nullopt);
  const Status fault =
      WithFabricAnswer(absl::InternalError("fault"), {"fmGetSupportedFabricPartitions", -10});
  ExpectError(Change(Kind::kActivate, {3}), 0, fault, StatusCode::kUnknown, "fault", -10);
}

TEST(FmChange, AnUnreadableListAfterARefusalLeavesTheClearCodesClear) {
  const Status list =
      WithFabricAnswer(absl::UnavailableError("starting"), {"fmGetSupportedFabricPartitions", -8});
  ExpectError(Change(Kind::kActivate, {3}), -8, list, StatusCode::kUnavailable, "-8", -8);
  ExpectError(Change(Kind::kActivate, {3}), -10, list, StatusCode::kInternal, "NVLINK_ERROR", -10);
  ExpectError(Change(Kind::kActivate, {3}), -7, list, StatusCode::kUnavailable,
              "-7 (IN_USE) from fmActivateFabricPartition at 127.0.0.1:6666, and the list", -8);
  // A warm FM that still waits refuses the list.
  ExpectError(Change(Kind::kSetActivated, {99}), -1, list, StatusCode::kInvalidArgument,
              "takes no such list as 99", -1);
  ExpectError(Change(Kind::kSetActivated, {3}), -2, list, StatusCode::kInternal, "-2", -2);
}

TEST(FmChange, TheInternalEndpointIsNamed) {
  const Status list = WithFabricAnswer(absl::FailedPreconditionError("internal"),
                                       {"fmGetSupportedFabricPartitions", -4});
  for (const Kind kind : {Kind::kActivate, Kind::kDeactivate, Kind::kSetActivated}) {
    ExpectError(Change(kind, {3}), -4, list, StatusCode::kFailedPrecondition, "internal", -4);
  }
  ExpectError(Change(Kind::kActivate, {3}), -4, List({}), StatusCode::kInternal, "-4", -4);
}

TEST(FmChange, TheListIsReadUnlessNothingIsLeftToRead) {
  std::set<nvfm::Return> not_read;
  for (nvfm::Return code = -40; code <= 5; ++code) {
    if (!DecidedByList(code)) not_read.insert(code);
  }
  EXPECT_EQ(not_read, (std::set<nvfm::Return>{-3, -6, -9}));
}

TEST(FmChange, ValidatesWhatIsAsked) {
  std::vector<int> ids(64);
  std::iota(ids.begin(), ids.end(), 0);
  EXPECT_TRUE(Change(Kind::kSetActivated, ids).Validate().ok());
  EXPECT_TRUE(Change(Kind::kSetActivated, {}).Validate().ok());
  ids.push_back(64);
  for (const FabricChange& bad :
       {Change(Kind::kSetActivated, ids), Change(Kind::kSetActivated, {3, 3}),
        Change(Kind::kSetActivated, {-1}), Change(Kind::kActivate, {}),
        Change(Kind::kDeactivate, {1, 2}), Change(Kind::kActivate, {-1})}) {
    EXPECT_EQ(bad.Validate().code(), StatusCode::kInvalidArgument) << bad.ToString();
  }
}

}  // namespace
}  // namespace switchyard::fabric
