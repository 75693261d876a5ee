// SPDX-License-Identifier: Apache-2.0
#include "tenancy/store_journal.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>

#include "absl/strings/str_replace.h"
#include "tenancy/record_json.h"
#include "tenancy/testing/enforcer_fixture.h"

namespace switchyard::tenancy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TenancyRecord Full() {
  TenancyRecord record;
  record.id = 1700000000;
  record.state = TenancyState::kReleasing;
  record.owner = Owner{"pod", "default/a \"quoted\""};
  record.until_released = true;
  record.adopted = true;
  record.lost = true;
  record.partition = 3;
  record.modules = {1, 3};
  record.devices = {testing::DeviceAt(1), testing::DeviceAt(3)};
  record.devices[0].backend = pci::Backend::kIommufd;
  record.devices[0].functions[0].cdev = "vfio3";
  record.devices[1].functions[0].prior = PriorDriver{"nvidia", ""};
  record.boot = {0x1b4e28ba2fa111d2, 0x883f0016d3cca427};
  record.begun = absl::FromUnixNanos(1'700'000'000'123'456'789);
  record.changed = absl::FromUnixSeconds(1'700'000'060);
  return record;
}

TEST(RecordTest, ComesBackAsItWas) {
  const auto back = ParseRecord(FormatRecord(Full()), "r");
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, Full());
  TenancyRecord bare;
  bare.id = 1;
  bare.modules = {16};
  bare.begun = bare.changed = absl::UnixEpoch();
  EXPECT_EQ(ParseRecord(FormatRecord(bare), "r").value(), bare);
}

TEST(RecordTest, BootIds) {
  EXPECT_EQ(Full().boot.ToString(), "1b4e28ba-2fa1-11d2-883f-0016d3cca427");
  EXPECT_EQ(BootId::Parse("1b4e28ba-2fa1-11d2-883f-0016d3cca427\n").value(), Full().boot);
  for (const char* bad :
       {"", "1b4e28ba-2fa1-11d2-883f-0016d3cca42", "not one",
        "1b4e28ba+2fa1-11d2-883f-0016d3cca427", "00000000-0000-0000-0000-000000000000"}) {
    EXPECT_EQ(BootId::Parse(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

TEST(RecordTest, WhatIsWrongIsNamed) {
  const std::string good = FormatRecord(Full());
  const auto error = [&](absl::string_view from, absl::string_view to) {
    EXPECT_THAT(good, HasSubstr(std::string(from)));
    const Status status =
        ParseRecord(absl::StrReplaceAll(good, {{from, to}}), "journal tenancy 7").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("journal tenancy 7"));
    return std::string(status.message());
  };
  EXPECT_THAT(error("\"releasing\"", "\"gone\""), HasSubstr("state"));
  EXPECT_THAT(error("[1,3]", "[1,17]"), HasSubstr("modules"));
  EXPECT_THAT(error("[1,3]", "[1,1]"), HasSubstr("modules"));
  EXPECT_THAT(error("[1,3]", "[]"), HasSubstr("modules"));
  EXPECT_THAT(error("0000:10:00.0", "x"), HasSubstr("devices[0]"));
  EXPECT_THAT(error("\"iommufd\"", "\"x\""), HasSubstr("devices[0].backend"));
  EXPECT_THAT(error("\"adopted\"", "\"adoptd\""), HasSubstr("adopt"));
  EXPECT_THAT(error("1b4e28ba", "1b4e"), HasSubstr("boot"));
  EXPECT_THAT(error("\"version\":1", "\"version\":0"), HasSubstr("version"));
  EXPECT_FALSE(ParseRecord("{", "r").ok());
}

TEST(RecordTest, ANewerVersionIsRefusedWhateverElseItSays) {
  const Status status = ParseRecord(R"({"version":2,"new":[]})", "journal tenancy 7").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("newer than 1"));
}

class StoreJournalTest : public ::testing::Test {
 protected:
  StoreJournalTest() {
    char name[] = "/tmp/journal-XXXXXX";
    folder_ = ::mkdtemp(name);
    Open();
  }
  ~StoreJournalTest() override { std::filesystem::remove_all(folder_); }
  void Open() {
    store_.reset();
    store_ = store::Store::Open(folder_, store::Store::Mode::kReadWrite).value().store;
  }
  std::string folder_;
  std::unique_ptr<store::Store> store_;
};

TEST_F(StoreJournalTest, WhatWasWrittenIsThereAfterARestart) {
  TenancyRecord other = Full();
  other.id = 9;
  other.modules = {2};
  other.devices.clear();
  ASSERT_TRUE(StoreJournal(*store_).Write(Full()).ok());
  ASSERT_TRUE(StoreJournal(*store_).Write(other).ok());
  const std::vector<fabric::ModuleSet> foreign = {{5}, {6, 8}};
  ASSERT_TRUE(StoreJournal(*store_).WriteForeign(foreign, Full().boot).ok());
  Open();
  auto content = StoreJournal(*store_).Load();
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_THAT(content->records, ElementsAre(other, Full()));
  EXPECT_EQ(content->foreign, foreign);
  EXPECT_EQ(content->foreign_boot, Full().boot);
  EXPECT_THAT(content->lost, IsEmpty());
  ASSERT_TRUE(StoreJournal(*store_).Erase(9).ok());
  ASSERT_TRUE(StoreJournal(*store_).Erase(9).ok());
  EXPECT_THAT(StoreJournal(*store_).Load()->records, ElementsAre(Full()));
}

TEST_F(StoreJournalTest, ADrainLastsUntilItIsEnded) {
  EXPECT_FALSE(StoreJournal(*store_).Load()->draining);
  ASSERT_TRUE(StoreJournal(*store_).WriteDraining(true).ok());
  Open();
  EXPECT_TRUE(StoreJournal(*store_).Load()->draining);
  EXPECT_THAT(*ExportJournal(*store_), HasSubstr("\"draining\": true"));
  ASSERT_TRUE(StoreJournal(*store_).WriteDraining(false).ok());
  EXPECT_FALSE(StoreJournal(*store_).Load()->draining);
}

TEST_F(StoreJournalTest, WhatIsDamagedIsLeftAndNamed) {
  ASSERT_TRUE(StoreJournal(*store_).Write(Full()).ok());
  ASSERT_TRUE(store_->Put("tenancy", "8", "{broken").ok());
  ASSERT_TRUE(store_->Put("tenancy", "7", FormatRecord(Full())).ok());
  ASSERT_TRUE(store_->Put("tenancy_foreign", "list", "[]").ok());
  const auto content = StoreJournal(*store_).Load();
  ASSERT_TRUE(content.ok());
  EXPECT_THAT(content->records, ElementsAre(Full()));
  EXPECT_THAT(content->lost,
              ElementsAre(HasSubstr("id: 1700000000 is not its key"),
                          HasSubstr("journal tenancy 8"), HasSubstr("tenancy_foreign")));
  EXPECT_EQ(store_->Get("tenancy", "8").value(), "{broken") << "for a person to look at";
  EXPECT_THAT(*VerifyJournal(*store_), ::testing::SizeIs(3));
  EXPECT_THAT(*ExportJournal(*store_), HasSubstr("{broken"));
}

TEST_F(StoreJournalTest, RecordsThatContradictEachOtherAreFound) {
  TenancyRecord other = Full();
  other.id = 9;
  ASSERT_TRUE(StoreJournal(*store_).Write(Full()).ok());
  EXPECT_THAT(*VerifyJournal(*store_), IsEmpty());
  ASSERT_TRUE(StoreJournal(*store_).Write(other).ok());
  EXPECT_THAT(*VerifyJournal(*store_), ElementsAre(HasSubstr("are in tenancy 9 already")));
}

TEST_F(StoreJournalTest, ANewerRecordStopsTheLoad) {
  ASSERT_TRUE(store_->Put("tenancy", "7", R"({"version":2})").ok());
  EXPECT_EQ(StoreJournal(*store_).Load().status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(*VerifyJournal(*store_), ElementsAre(HasSubstr("newer")));
}

}  // namespace
}  // namespace switchyard::tenancy
