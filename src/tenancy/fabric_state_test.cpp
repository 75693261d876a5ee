// SPDX-License-Identifier: Apache-2.0
#include "tenancy/fabric_state.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tenancy/testing/fakes.h"

namespace switchyard::tenancy {
namespace {

using testing::H100;
using testing::ListOf;
using testing::Pci;
using Names = std::vector<std::string>;

class FabricStateTest : public ::testing::Test {
 protected:
  FabricStateTest() {
    char name[] = "/tmp/fabric-XXXXXX";
    folder_ = ::mkdtemp(name);
    map_file_ = absl::StrCat(folder_, "/map.json");
    OpenStore();
    Restart();
  }
  ~FabricStateTest() override { std::filesystem::remove_all(folder_); }

  void OpenStore() {
    store_ = store::Store::Open(folder_ + "/state", store::Store::Mode::kReadWrite).value().store;
  }
  // A new agent over the same state.
  std::shared_ptr<const FabricKnowledge> Restart() {
    state_ = std::make_unique<FabricState>(
        std::vector{map_file_}, FabricState::Parts{&clock_, &events_, store_.get(),
                                                   with_reader_ ? &reader_ : nullptr, boot_});
    return state_->Load();
  }
  std::shared_ptr<const FabricKnowledge> Refresh() {
    auto knowledge = state_->Refresh();
    state_->Settle();
    return knowledge;
  }
  void WriteMap(absl::string_view text) { std::ofstream(map_file_) << std::string(text); }
  void RemoveMap() { std::filesystem::remove(map_file_); }

  std::string folder_;
  std::string map_file_;
  SimClock clock_;
  testing::FakeEvents events_;
  testing::FakeReader reader_;
  bool with_reader_ = true;
  BootId boot_ = {1, 1};
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<FabricState> state_;
};

TEST_F(FabricStateTest, ReportsOnlyWhatChanged) {
  auto now = Refresh();
  EXPECT_FALSE(now->known);
  EXPECT_FALSE(now->up);
  EXPECT_EQ(now->error, "connection refused");
  const auto down = events_.Take();
  ASSERT_EQ(down.size(), 1u);
  EXPECT_EQ(down[0].name, "fabric_down");
  EXPECT_TRUE(absl::StrContains(down[0].message, "connection refused")) << down[0].message;

  (void)Refresh();
  EXPECT_EQ(events_.TakeNames(), Names{}) << "still down";
  reader_.list = absl::NotFoundError("libnvfm.so.1 is not here");
  (void)Refresh();
  EXPECT_EQ(events_.TakeNames(), Names{"fabric_down"}) << "down for another reason";

  reader_.list = H100();
  now = Refresh();
  EXPECT_TRUE(now->known && now->up);
  EXPECT_EQ(now->error, "");
  EXPECT_EQ(now->read_at, clock_.Now());
  EXPECT_EQ(now->table.partitions.size(), 15u);
  EXPECT_EQ(events_.TakeNames(), (Names{"fabric_up", "table_changed"}));
  (void)Refresh();
  EXPECT_EQ(events_.TakeNames(), Names{});

  reader_.list = H100({3, 4});
  (void)Refresh();
  EXPECT_EQ(events_.TakeNames(), Names{"active_changed"});
  reader_.list = ListOf({{3, {1, 3}}});
  (void)Refresh();
  EXPECT_EQ(events_.TakeNames(), Names{"table_changed"});
}

TEST_F(FabricStateTest, GoesOnWithTheLastListWhenFabricManagerDies) {
  reader_.list = H100({5});
  const absl::Time read_at = clock_.Now();
  (void)Refresh();
  clock_.Advance(absl::Hours(30));
  reader_.list = absl::DeadlineExceededError("no answer in 15s");
  const auto now = Refresh();
  EXPECT_TRUE(now->known);
  EXPECT_FALSE(now->up) << "never taken for alive, however old the success";
  EXPECT_EQ(now->error, "no answer in 15s");
  EXPECT_EQ(now->read_at, read_at);
  ASSERT_EQ(now->table.partitions.size(), 15u);
  EXPECT_TRUE(now->table.Find(5)->active);
}

TEST_F(FabricStateTest, TheListOutlivesARestart) {
  reader_.list = H100({5});
  const absl::Time read_at = clock_.Now();
  (void)Refresh();
  reader_.list = absl::UnavailableError("down");
  clock_.Advance(absl::Hours(1));
  for (const auto& now : {Restart(), Refresh()}) {
    EXPECT_TRUE(now->known);
    EXPECT_FALSE(now->up);
    EXPECT_EQ(now->read_at, read_at);
    ASSERT_NE(now->table.Find(5), nullptr);
    EXPECT_TRUE(now->table.Find(5)->active);
  }
  (void)events_.Take();
  reader_.list = H100({5});
  (void)Refresh();
  EXPECT_EQ(events_.TakeNames(), Names{"fabric_up"}) << "the table is the remembered one";
}

TEST_F(FabricStateTest, AListThatBreaksTheRulesChangesNothing) {
  reader_.list = H100();
  (void)Refresh();
  reader_.list = absl::DataLossError("partition 3 is listed twice");
  const auto now = Refresh();
  EXPECT_EQ(now->table.partitions.size(), 15u);
  EXPECT_EQ(now->error, "partition 3 is listed twice");
}

TEST_F(FabricStateTest, AnEndedReadIsNoNews) {
  reader_.list = H100();
  (void)Refresh();
  (void)events_.Take();
  reader_.list = absl::CancelledError("ended");
  EXPECT_TRUE(Refresh()->up);
  EXPECT_EQ(events_.TakeNames(), Names{});
}

TEST_F(FabricStateTest, NothingOfAnotherBootIsActive) {
  const auto active = [&] {
    int count = 0;
    const auto list = state_->ListOfThisBoot();
    for (const auto& partition : list->partitions) count += partition.active ? 1 : 0;
    return count;
  };
  EXPECT_FALSE(state_->ListOfThisBoot().has_value());
  reader_.list = H100({3, 4});
  (void)Refresh();
  (void)Restart();
  EXPECT_EQ(active(), 2);
  boot_ = {2, 2};
  (void)Restart();
  EXPECT_EQ(active(), 0);
  (void)Refresh();
  EXPECT_EQ(active(), 2) << "read in this boot";
  (void)Restart();
  EXPECT_EQ(active(), 2);
}

TEST_F(FabricStateTest, JoinsTheFileAndRemembersIt) {
  WriteMap(R"({"00000000:1B:00.0": "1", "0000:43:00.0": 2})");
  auto now = Refresh();
  EXPECT_EQ(now->map.ModuleOf(Pci("0000:1b:00.0")), 1);
  EXPECT_EQ(events_.TakeNames(), (Names{"fabric_down", "map_changed"}));
  RemoveMap();
  now = Refresh();
  EXPECT_EQ(now->map.ModuleOf(Pci("0000:43:00.0")), 2) << "an absent file is normal";
  EXPECT_EQ(events_.TakeNames(), Names{});
  now = Restart();
  EXPECT_EQ(now->map.ModuleOf(Pci("0000:1b:00.0")), 1) << "over a restart";
  EXPECT_EQ(Refresh()->map.entries().size(), 2u);
}

TEST_F(FabricStateTest, NvmlIsRememberedForWhenTheGpuIsOnVfio) {
  reader_.nvml = fabric::ModuleEntries{{Pci("0000:1b:00.0"), 7}};
  (void)Refresh();
  reader_.nvml = fabric::ModuleEntries{};
  EXPECT_EQ(Restart()->map.ModuleOf(Pci("0000:1b:00.0")), 7);
}

TEST_F(FabricStateTest, AReplacedBoardReplacesWhatIsRemembered) {
  WriteMap(R"({"0000:1b:00.0": 1, "0000:43:00.0": 2})");
  (void)Refresh();
  WriteMap(R"({"0000:1b:00.0": 2})");
  (void)Refresh();
  RemoveMap();
  const auto now = Restart();
  EXPECT_EQ(now->map.ModuleOf(Pci("0000:1b:00.0")), 2);
  EXPECT_EQ(now->map.ModuleOf(Pci("0000:43:00.0")), std::nullopt) << "module 2 is elsewhere now";
}

TEST_F(FabricStateTest, AMalformedFileIsNamedAndNothingIsUsedInItsPlace) {
  WriteMap(R"({"0000:1b:00.0": 1})");
  (void)Refresh();
  (void)events_.Take();
  WriteMap(R"({"0000:1b:00.0": 1, "0000:43:00.0": 17})");
  const auto now = Refresh();
  EXPECT_TRUE(now->map.entries().empty());
  ASSERT_EQ(now->map_errors.size(), 1u);
  EXPECT_TRUE(absl::StrContains(now->map_errors[0], map_file_)) << now->map_errors[0];
  const auto events = events_.Take();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].name, "map_error");
  EXPECT_TRUE(absl::StrContains(events[0].message, map_file_)) << events[0].message;
  EXPECT_TRUE(absl::StrContains(events[0].message, "17")) << events[0].message;
  EXPECT_EQ(events[1].name, "map_changed");
  (void)Refresh();
  EXPECT_EQ(events_.TakeNames(), Names{}) << "said once";

  RemoveMap();
  const auto mended = Refresh();
  EXPECT_EQ(mended->map.ModuleOf(Pci("0000:1b:00.0")), 1) << "the memory was kept";
  EXPECT_TRUE(mended->map_errors.empty());
  WriteMap(R"({"0000:1b:00.0": 1, "0000:43:00.0": 17})");
  (void)Refresh();
  EXPECT_EQ(events_.TakeNames(), (Names{"map_changed", "map_error", "map_changed"}));
}

TEST_F(FabricStateTest, SourcesThatDisagreeLeaveTheEntryOut) {
  WriteMap(R"({"0000:1b:00.0": 1, "0000:43:00.0": 2})");
  reader_.nvml = fabric::ModuleEntries{{Pci("0000:1b:00.0"), 3}};
  const auto now = Refresh();
  EXPECT_EQ(now->map.ModuleOf(Pci("0000:1b:00.0")), std::nullopt);
  EXPECT_EQ(now->map.ModuleOf(Pci("0000:43:00.0")), 2);
  const Names names = events_.TakeNames();
  EXPECT_NE(std::find(names.begin(), names.end(), "map_error"), names.end());
}

// A100: FM names its GPUs by address; its physical ids are no module ids.
fabric::FabricList WithAddresses() {
  fabric::FabricList list = ListOf({{0, {9, 4}}});
  list.partitions[0].gpus[0].address = Pci("0000:0f:00.0");
  list.partitions[0].gpus[1].address = Pci("0000:15:00.0");
  return list;
}

TEST_F(FabricStateTest, FabricManagersOwnNumbersAreNotKeptAsModuleIds) {
  reader_.list = WithAddresses();
  EXPECT_EQ(Refresh()->map.ModuleOf(Pci("0000:0f:00.0")), 9);
  EXPECT_TRUE(store_->List("module_map")->empty());

  reader_.list = absl::UnavailableError("down");
  EXPECT_EQ(Restart()->map.ModuleOf(Pci("0000:0f:00.0")), 9) << "from the remembered list";
  EXPECT_EQ(Refresh()->map.ModuleOf(Pci("0000:0f:00.0")), 9);

  WriteMap(R"({"0000:0f:00.0": 1})");  // module ids: another numbering
  const auto now = Refresh();
  EXPECT_EQ(now->map.ModuleOf(Pci("0000:0f:00.0")), 1);
  EXPECT_EQ(now->map.ModuleOf(Pci("0000:15:00.0")), std::nullopt) << "never mixed";
}

TEST_F(FabricStateTest, SpoiledMemoryIsReportedAndLeftOut) {
  ASSERT_TRUE(store_->Put("module_map", "0000:1b:00.0", "99").ok());
  ASSERT_TRUE(store_->Put("module_map", "0000:43:00.0", "2").ok());
  ASSERT_TRUE(store_->Put("fabric_list", "list", "{\"partitions\":").ok());
  const auto now = Restart();
  EXPECT_FALSE(now->known);
  EXPECT_EQ(now->map.entries().size(), 1u);
  EXPECT_EQ(events_.TakeNames(), (Names{"memory_error", "memory_error"}));
}

TEST_F(FabricStateTest, AStoreThatFailsIsReportedOnceAndTriedAgain) {
  store_ = store::Store::Open(folder_ + "/state", store::Store::Mode::kReadOnly).value().store;
  Restart();
  reader_.list = H100();
  EXPECT_TRUE(Refresh()->known) << "goes on without";
  EXPECT_EQ(events_.TakeNames(), (Names{"memory_error", "fabric_up", "table_changed"}));
  (void)Refresh();
  EXPECT_EQ(events_.TakeNames(), Names{});
}

TEST_F(FabricStateTest, WritesNothingWhileNothingChanges) {
  WriteMap(R"({"0000:1b:00.0": 1})");
  reader_.list = H100({3});
  (void)Refresh();
  const std::string wal = folder_ + "/state/switchyard.db-wal";
  const auto size = std::filesystem::file_size(wal);
  for (int i = 0; i < 3; ++i) {
    clock_.Advance(absl::Seconds(15));
    EXPECT_EQ(Refresh()->read_at, clock_.Now());
  }
  EXPECT_EQ(std::filesystem::file_size(wal), size);
}

TEST_F(FabricStateTest, WorksWithoutReaderAndStore) {
  WriteMap(R"({"0000:1b:00.0": 1})");
  FabricState state({map_file_}, {&clock_, &events_, nullptr, nullptr});
  EXPECT_FALSE(state.Load()->known);
  const auto now = state.Refresh();
  state.Settle();
  EXPECT_FALSE(now->known || now->up);
  EXPECT_EQ(now->map.ModuleOf(Pci("0000:1b:00.0")), 1);
}

}  // namespace
}  // namespace switchyard::tenancy
