// SPDX-License-Identifier: Apache-2.0
#include "agent/make_tenancies.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "absl/strings/str_cat.h"
#include "agent/restart_judge.h"
#include "base/files.h"
#include "fabric/fabric_answer.h"
#include "tenancy/testing/fakes.h"

namespace switchyard::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Refuses its list, as a Fabric Manager that waits for the active partitions does.
class WaitingFabric final : public fabric::FabricControl {
 public:
  Result<fabric::FabricList> ReadPartitions() override {
    return fabric::WithFabricAnswer(absl::UnavailableError("still initialising"),
                                    {"fmGetSupportedFabricPartitions", -8});
  }
  Result<fabric::ModuleEntries> ReadModuleIds() override { return fabric::ModuleEntries{}; }
  Result<fabric::FabricList> Activate(int, absl::Duration) override { return ReadPartitions(); }
  Result<fabric::FabricList> Deactivate(int, absl::Duration) override { return ReadPartitions(); }
  Result<fabric::FabricList> SetActivated(std::span<const int> partitions) override {
    sent.emplace(partitions.begin(), partitions.end());
    return ReadPartitions();
  }
  std::optional<std::vector<int>> sent;
};

class RestartTest : public ::testing::Test {
 protected:
  RestartTest() {
    char folder[] = "/tmp/swy-tenancies-XXXXXX";
    folder_ = ::mkdtemp(folder);
    EXPECT_TRUE(MakeFolders(folder_ + "/proc/4711").ok());
    Run({});
  }
  ~RestartTest() override { std::filesystem::remove_all(folder_); }
  void Run(absl::string_view flags) {
    std::string line = absl::StrCat("nv-fabricmanager ", flags, " ");
    std::replace(line.begin(), line.end(), ' ', '\0');
    EXPECT_TRUE(WriteFileAtomically(folder_ + "/proc/4711/cmdline", line).ok());
  }

  std::string folder_;
  tenancy::testing::FakeEvents events_;
};

TEST_F(RestartTest, AFabricManagerStartedWithRestartLaterIsToldTheList) {
  RealClock clock;
  auto opened = store::Store::Open(folder_, store::Store::Mode::kReadWrite);
  ASSERT_TRUE(opened.ok()) << opened.status();
  WaitingFabric fabric;
  Config config;
  config.fabric.mode = tenancy::FabricMode::kEnforce;
  config.paths.host_root = folder_;
  const auto tenancies = MakeTenancies(config, {&clock, &events_, opened->store.get(), &fabric});
  tenancies->RefreshFabric();
  EXPECT_FALSE(fabric.sent.has_value());
  Run("--restart");
  tenancies->RefreshFabric();
  ASSERT_TRUE(fabric.sent.has_value());
  EXPECT_THAT(*fabric.sent, IsEmpty());
  fabric.sent.reset();
  Run({});
  tenancies->RefreshFabric();
  EXPECT_FALSE(fabric.sent.has_value());
}

TEST_F(RestartTest, WhatCantBeToldIsReportedOnceUntilItCan) {
  const std::string path = folder_ + "/fabricmanager.cfg";
  RestartJudge judge(fabric::RestartSetting::kAuto, path, HostRoot(folder_), events_);
  const auto config = [&](absl::string_view value) {
    EXPECT_TRUE(WriteFileAtomically(path, absl::StrCat("FABRIC_MODE_RESTART=", value, "\n")).ok());
  };
  config("yes");
  EXPECT_FALSE(judge.IsWarm());
  EXPECT_FALSE(judge.IsWarm());
  EXPECT_THAT(events_.TakeNames(), ElementsAre("restart_kind_unknown"));
  config("1");
  EXPECT_TRUE(judge.IsWarm());
  config("yes");
  EXPECT_FALSE(judge.IsWarm());
  EXPECT_THAT(events_.TakeNames(), ElementsAre("restart_kind_unknown"));
}

}  // namespace
}  // namespace switchyard::agent
