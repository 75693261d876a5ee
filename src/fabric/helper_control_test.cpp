// SPDX-License-Identifier: Apache-2.0
// Changes through the helper process for real: FabricHelper, a helper executable, the simulator's
// libnvfm.so.1 in it, and the simulator's Fabric Manager in this process. Reads: helper_test.cpp.
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "absl/strings/str_cat.h"
#include "fabric/fabric_control.h"
#include "fabric/helper.h"
#include "fabric/restart_kind.h"
#include "sim/fm/fabric_manager.h"

namespace switchyard::fabric {
namespace {

using absl::StatusCode;
using sim::FabricManagerFaults;
using sim::WireCall;
using Hang = FabricManagerFaults::Hang;

// Long enough for a slow machine; no test waits for it to pass.
constexpr absl::Duration kLong = absl::Seconds(60);

sim::Board PairBoard(const std::string& return_codes) {
  sim::Board board;
  board.name = "pair";
  board.return_codes = return_codes;
  board.partitions = {{0, {1, 2}, 18}, {7, {1}, 0}, {8, {2}, 0}};
  for (const int module : {1, 2}) {
    sim::BoardDevice device;
    device.module = device.physical_id = module;
    board.devices.push_back(device);
  }
  return board;
}

class HelperControlTest : public testing::Test {
 protected:
  HelperControlTest() {
    char folder[] = "/tmp/swy-fmc-XXXXXX";
    folder_ = ::mkdtemp(folder);
    Up("hopper");
  }
  ~HelperControlTest() override { std::filesystem::remove_all(folder_); }

  void Up(const std::string& return_codes) {
    manager_ = std::make_unique<sim::FabricManager>(
        PairBoard(return_codes),
        sim::FabricManager::Options{.unix_socket = folder_ + "/fm",
                                    .internal_socket = folder_ + "/internal",
                                    .clock = &clock_});
    const Status status = manager_->Start();
    EXPECT_TRUE(status.ok()) << status;
  }

  HelperOptions Options() const {
    HelperOptions options;
    options.command = {SWITCHYARD_BIN_DIR "/fabric_helper_test_main"};
    options.address = *FabricAddress::Parse(absl::StrCat("unix:", folder_, "/fm"));
    options.fabric_library = SWITCHYARD_LIB_DIR "/libnvfm.so.1";
    options.timeout = kLong;
    return options;
  }

  void SetFaults(const std::function<void(FabricManagerFaults&)>& set) {
    FabricManagerFaults faults;
    set(faults);
    manager_->SetFaults(faults);
  }

  static void ExpectActive(const Result<FabricList>& list, const std::set<int>& expected) {
    ASSERT_TRUE(list.ok()) << list.status();
    std::set<int> active;
    for (const FabricPartition& partition : list->partitions) {
      if (partition.active) active.insert(partition.id);
    }
    EXPECT_EQ(active, expected);
  }
  static void ExpectError(const Status& status, StatusCode code, std::optional<int> fm_code,
                          absl::string_view says) {
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_EQ(FabricCodeOf(status), fm_code) << status;
    EXPECT_NE(status.message().find(says), absl::string_view::npos) << status;
  }

  std::string folder_;
  SimClock clock_;
  std::unique_ptr<sim::FabricManager> manager_;
};

TEST_F(HelperControlTest, ActivatesAndDeactivatesOnBothGenerations) {
  for (const auto& [generation, held] : {std::pair{"hopper", -7}, {"blackwell", -24}}) {
    SCOPED_TRACE(generation);
    Up(generation);
    FabricHelper helper(Options());
    ExpectActive(helper.Activate(7, kLong), {7});
    ExpectActive(helper.Activate(7, kLong), {7});  // already: -7 or -17
    ExpectActive(helper.Activate(8, kLong), {7, 8});
    ExpectError(helper.Activate(0, kLong).status(), StatusCode::kAlreadyExists, held,
                "the active partition 7 has GPU 1 of partition 0");
    ExpectError(helper.Activate(99, kLong).status(), StatusCode::kInvalidArgument, -1,
                "no partition 99");
    ExpectActive(helper.Deactivate(7, kLong), {8});
    ExpectActive(helper.Deactivate(7, kLong), {8});  // already: -4 or -18
    ExpectActive(helper.ReadPartitions(), {8});
    EXPECT_EQ(manager_->active(), std::set<int>{8});
  }
}

TEST_F(HelperControlTest, EachIsOneConnection) {
  FabricHelper helper(Options());
  ExpectActive(helper.Activate(7, kLong), {7});
  EXPECT_EQ(manager_->calls(), (std::map<WireCall, int>{{WireCall::kConnect, 1},
                                                        {WireCall::kActivate, 1},
                                                        {WireCall::kListPartitions, 1}}));
}

TEST_F(HelperControlTest, ASuccessThatChangesNothingIsAnError) {
  SetFaults([](FabricManagerFaults& faults) { faults.no_effect = true; });
  FabricHelper helper(Options());
  ExpectError(helper.Activate(7, kLong).status(), StatusCode::kUnknown, std::nullopt,
              "does not show it");
  ASSERT_TRUE(manager_->SetActive({7}).ok());
  ExpectError(helper.Deactivate(7, kLong).status(), StatusCode::kUnknown, std::nullopt,
              "does not show it");
}

TEST_F(HelperControlTest, AWarmFabricManagerTakesTheListAndNothingElse) {
  ASSERT_TRUE(manager_->SetActive({7, 8}).ok());
  FabricHelper helper(Options());
  ExpectActive(helper.ReadPartitions(), {7, 8});
  ASSERT_TRUE(manager_->Restart(sim::FabricManager::Kind::kWarm).ok());
  const Status waiting = helper.ReadPartitions().status();
  ExpectError(waiting, StatusCode::kUnavailable, -8, "NOT_CONFIGURED");
  EXPECT_TRUE(MayWaitForActiveList(waiting, true));
  ExpectError(helper.Activate(7, kLong).status(), StatusCode::kUnavailable, -8, "");
  const int unknown[] = {7, 99};
  ExpectError(helper.SetActivated(unknown).status(), StatusCode::kInvalidArgument, -1, "7, 99");
  EXPECT_TRUE(manager_->waiting());
  const int active[] = {7, 8};
  ExpectActive(helper.SetActivated(active), {7, 8});
  EXPECT_EQ(manager_->routed(), (std::set<int>{7, 8}));
  ExpectActive(helper.Deactivate(8, kLong), {7});
}

TEST_F(HelperControlTest, AnEmptyListIsAListToo) {
  ASSERT_TRUE(manager_->Restart(sim::FabricManager::Kind::kWarm).ok());
  FabricHelper helper(Options());
  ExpectActive(helper.SetActivated({}), {});
  EXPECT_FALSE(manager_->waiting());
}

TEST_F(HelperControlTest, ALateActivationHappensAfterTheDeadline) {
  SetFaults([](FabricManagerFaults& faults) { faults.late_changes = true; });
  HelperOptions options = Options();
  options.timeout = absl::Milliseconds(200);
  FabricHelper helper(options);
  // On a slow machine the first helpers may not even get to ask.
  while (!manager_->calls().contains(WireCall::kActivate)) {
    ExpectError(helper.Activate(7, kLong).status(), StatusCode::kDeadlineExceeded, std::nullopt,
                "/fm to activate partition 7 gave no answer within 200ms");
  }
  EXPECT_TRUE(manager_->AwaitActive({7}, kLong));
}

TEST_F(HelperControlTest, ACrashAfterTheChangeIsAborted) {
  SetFaults([](FabricManagerFaults& faults) { faults.crash_library = true; });
  FabricHelper helper(Options());
  ExpectError(helper.Activate(7, kLong).status(), StatusCode::kAborted, std::nullopt, "signal 11");
  manager_->SetFaults({});
  ExpectActive(helper.ReadPartitions(), {7});
}

TEST_F(HelperControlTest, ARestartBreaksACallThatHangs) {
  SetFaults([](FabricManagerFaults& faults) { faults.hang = Hang::kActivate; });
  FabricHelper helper(Options());
  std::thread other([&] {
    EXPECT_TRUE(manager_->AwaitHeldCall(kLong));
    EXPECT_TRUE(manager_->Restart(sim::FabricManager::Kind::kCold).ok());
  });
  ExpectError(helper.Activate(7, kLong).status(), StatusCode::kUnavailable, -9,
              "CONNECTION_NOT_VALID");
  other.join();
}

TEST_F(HelperControlTest, ALibraryWithoutTheCallsStillReads) {
  HelperOptions options = Options();
  options.fabric_library = SWITCHYARD_LIB_DIR "/libnvfm-reads-only.so.1";
  FabricHelper helper(options);
  ExpectActive(helper.ReadPartitions(), {});
  ExpectError(helper.Activate(7, kLong).status(), StatusCode::kUnimplemented, std::nullopt,
              "fmActivateFabricPartition");
  ExpectError(helper.Deactivate(7, kLong).status(), StatusCode::kUnimplemented, std::nullopt,
              "fmDeactivateFabricPartition");
  ExpectError(helper.SetActivated({}).status(), StatusCode::kUnimplemented, std::nullopt,
              "fmSetActivatedFabricPartitions");
}

TEST_F(HelperControlTest, TheInternalSocketIsNamed) {
  HelperOptions options = Options();
  options.address = *FabricAddress::Parse(absl::StrCat("unix:", folder_, "/internal"));
  FabricHelper helper(options);
  ExpectError(helper.Activate(7, kLong).status(), StatusCode::kFailedPrecondition, -4,
              "FM_CMD_UNIX_SOCKET_PATH");
  ExpectError(helper.Deactivate(7, kLong).status(), StatusCode::kFailedPrecondition, -4,
              "FM_CMD_UNIX_SOCKET_PATH");
}

TEST_F(HelperControlTest, WhatCantBeAskedForStartsNoHelper) {
  HelperOptions options = Options();
  options.command = {"/nonexistent/helper"};
  FabricHelper helper(options);
  ExpectError(helper.Activate(-1, kLong).status(), StatusCode::kInvalidArgument, std::nullopt,
              "-1");
}

TEST_F(HelperControlTest, AChangeMayHaveLessTimeThanTheHelper) {
  SetFaults([](FabricManagerFaults& faults) { faults.hang = Hang::kActivate; });
  FabricHelper helper(Options());
  ExpectError(helper.Activate(7, absl::Microseconds(58210)).status(), StatusCode::kDeadlineExceeded,
              std::nullopt, "gave no answer within 50ms");
}

TEST_F(HelperControlTest, OneThatClosesCutsCallsShortAndRefusesThoseAfter) {
  SetFaults([](FabricManagerFaults& faults) { faults.hang = Hang::kActivate; });
  FabricHelper helper(Options());
  helper.CloseWithin(absl::Milliseconds(50));
  ExpectError(helper.Activate(7, kLong).status(), StatusCode::kDeadlineExceeded, std::nullopt,
              "gave no answer");
  ExpectError(helper.Activate(7, kLong).status(), StatusCode::kCancelled, std::nullopt,
              "the agent is stopping");
}

TEST_F(HelperControlTest, AChangeEndsAReadInFlightAndLaterCallsWork) {
  SetFaults([](FabricManagerFaults& faults) { faults.hang = Hang::kList; });
  FabricHelper helper(Options());
  std::thread reader([&] {
    ExpectError(helper.ReadPartitions().status(), StatusCode::kCancelled, std::nullopt,
                "interrupted");
  });
  EXPECT_TRUE(manager_->AwaitHeldCall(kLong));
  manager_->SetFaults({});
  ExpectActive(helper.Activate(7, kLong), {7});
  reader.join();
  ExpectActive(helper.ReadPartitions(), {7});
}

TEST_F(HelperControlTest, AChangeLeavesAnotherAloneAndCloseEndsIt) {
  SetFaults([](FabricManagerFaults& faults) { faults.hang = Hang::kActivate; });
  FabricHelper helper(Options());
  std::thread other([&] {
    EXPECT_TRUE(manager_->AwaitHeldCall(kLong));
    ExpectError(helper.Deactivate(8, absl::Milliseconds(50)).status(),
                StatusCode::kDeadlineExceeded, std::nullopt, "Fabric Manager was not asked");
    manager_->Stop();  // the change ends by FM's end, which is told apart from an interruption
  });
  ExpectError(helper.Activate(7, kLong).status(), StatusCode::kUnavailable, -9, "");
  other.join();

  ASSERT_TRUE(manager_->Start().ok());
  std::thread closer([&] {
    EXPECT_TRUE(manager_->AwaitHeldCall(kLong));
    helper.Close();
  });
  ExpectError(helper.Activate(7, kLong).status(), StatusCode::kCancelled, std::nullopt,
              "interrupted");
  closer.join();
}

}  // namespace
}  // namespace switchyard::fabric
