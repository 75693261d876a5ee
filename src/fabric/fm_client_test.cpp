// SPDX-License-Identifier: Apache-2.0
// The client against a libnvfm that a test scripts call by call.
#include "fabric/fm_client.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <vector>

#include "fabric/fabric_answer.h"
#include "fabric/fabric_control.h"
#include "fabric/nvfm_codes.h"

namespace switchyard::fabric {
namespace {

using absl::StatusCode;

// What the library saw, outliving the client that owns the fake.
struct Log {
  std::vector<std::string> calls;
  std::vector<nvfm::ConnectParamsV2> connects;  // version 1: address_type left 0
  std::vector<std::uint32_t> ids;               // of the last change
};

class FakeNvfm final : public NvfmApi {
 public:
  explicit FakeNvfm(Log& log) : log_(log) {}

  nvfm::Return init_code = 0;
  nvfm::Return connect_v2_code = 0;
  nvfm::Return connect_v1_code = 0;
  nvfm::Return list_code = 0;
  nvfm::Return change_code = 0;
  std::string lacks;  // this function
  std::function<void(nvfm::PartitionList&)> fill = [](nvfm::PartitionList&) {};

  nvfm::Return Init() override {
    log_.calls.push_back("init");
    return init_code;
  }
  nvfm::Return Shutdown() override {
    log_.calls.push_back("shutdown");
    return 0;
  }
  nvfm::Return Connect(void* params, nvfm::Handle* handle) override {
    const auto* v1 = static_cast<nvfm::ConnectParamsV1*>(params);
    const bool is_v1 = v1->version == nvfm::kConnectParamsV1Version;
    nvfm::ConnectParamsV2 seen{};
    std::memcpy(&seen, params, is_v1 ? sizeof(nvfm::ConnectParamsV1) : sizeof(seen));
    log_.connects.push_back(seen);
    log_.calls.push_back(is_v1 ? "connect v1" : "connect v2");
    const nvfm::Return code = is_v1 ? connect_v1_code : connect_v2_code;
    if (code == 0) *handle = this;
    return code;
  }
  nvfm::Return Disconnect(nvfm::Handle handle) override {
    log_.calls.push_back(handle == this ? "disconnect" : "disconnect of another handle");
    return 0;
  }
  nvfm::Return GetSupportedFabricPartitions(nvfm::Handle handle,
                                            nvfm::PartitionList* list) override {
    log_.calls.push_back(handle == this ? "list" : "list of another handle");
    EXPECT_EQ(list->version, 0x0102030cu);
    EXPECT_EQ(list->num_partitions, 0u);
    if (list_code == 0) fill(*list);
    return list_code;
  }
  bool Has(absl::string_view function) const override { return function != lacks; }
  nvfm::Return ActivateFabricPartition(nvfm::Handle handle, std::uint32_t id) override {
    return Change("activate", handle, {id});
  }
  nvfm::Return DeactivateFabricPartition(nvfm::Handle handle, std::uint32_t id) override {
    return Change("deactivate", handle, {id});
  }
  nvfm::Return SetActivatedFabricPartitions(nvfm::Handle handle,
                                            nvfm::ActivatedList* list) override {
    EXPECT_EQ(list->version, 0x01000108u);
    return Change("set activated", handle, {list->ids, list->ids + list->num_partitions});
  }

 private:
  nvfm::Return Change(const char* call, nvfm::Handle handle, std::vector<std::uint32_t> ids) {
    EXPECT_EQ(handle, this);
    log_.calls.push_back(call);
    log_.ids = std::move(ids);
    return change_code;
  }

  Log& log_;
};

FabricAddress Address(absl::string_view text) { return *FabricAddress::Parse(text); }

class FmClientTest : public testing::Test {
 protected:
  Result<FabricList> Read(absl::string_view address = "127.0.0.1:6666") {
    FmClient client(std::move(fake_));
    return client.ReadPartitions(Address(address), absl::Seconds(7));
  }

  // The status of a read whose fmConnect (both versions) or list call returns `code`.
  static Status WithCode(const char* which, nvfm::Return code,
                         absl::string_view address = "127.0.0.1:6666") {
    Log log;
    auto fake = std::make_unique<FakeNvfm>(log);
    if (std::string(which) == "connect") fake->connect_v2_code = fake->connect_v1_code = code;
    if (std::string(which) == "list") fake->list_code = code;
    if (std::string(which) == "init") fake->init_code = code;
    FmClient client(std::move(fake));
    return client.ReadPartitions(Address(address), absl::Seconds(1)).status();
  }

  Log log_;
  std::unique_ptr<FakeNvfm> fake_ = std::make_unique<FakeNvfm>(log_);
};

TEST_F(FmClientTest, CallsInTheDocumentedOrder) {
  ASSERT_TRUE(Read().ok());
  EXPECT_EQ(log_.calls,
            (std::vector<std::string>{"init", "connect v2", "list", "disconnect", "shutdown"}));
}

TEST_F(FmClientTest, InitialisesOnceAndConnectsEachTime) {
  {
    FmClient client(std::move(fake_));
    ASSERT_TRUE(client.ReadPartitions(Address("127.0.0.1:6666"), absl::Seconds(1)).ok());
    ASSERT_TRUE(client.ReadPartitions(Address("127.0.0.1:6666"), absl::Seconds(1)).ok());
  }
  EXPECT_EQ(log_.calls, (std::vector<std::string>{"init", "connect v2", "list", "disconnect",
                                                  "connect v2", "list", "disconnect", "shutdown"}));
}

TEST_F(FmClientTest, TcpParametersSetBothWordsForTheKind) {
  ASSERT_TRUE(Read().ok());
  ASSERT_EQ(log_.connects.size(), 1u);
  EXPECT_EQ(log_.connects[0].version, 0x02000110u);
  EXPECT_STREQ(log_.connects[0].address, "127.0.0.1:6666");
  EXPECT_EQ(log_.connects[0].timeout_ms, 7000u);
  EXPECT_EQ(log_.connects[0].is_unix_socket, 0u);
  EXPECT_EQ(log_.connects[0].address_type, nvfm::AddressType::kInet);
}

TEST_F(FmClientTest, UnixParametersSetBothWordsForTheKind) {
  ASSERT_TRUE(Read("unix:/run/fm").ok());
  ASSERT_EQ(log_.connects.size(), 1u);
  EXPECT_STREQ(log_.connects[0].address, "/run/fm");
  EXPECT_EQ(log_.connects[0].is_unix_socket, 1u);
  EXPECT_EQ(log_.connects[0].address_type, nvfm::AddressType::kUnix);
}

TEST_F(FmClientTest, TimeoutIsNever0) {
  FmClient client(std::move(fake_));
  for (absl::Duration timeout : {absl::ZeroDuration(), absl::Seconds(-5), absl::Microseconds(1)}) {
    ASSERT_TRUE(client.ReadPartitions(Address("127.0.0.1:6666"), timeout).ok());
    EXPECT_EQ(log_.connects.back().timeout_ms, 1u);
  }
}

TEST_F(FmClientTest, OlderFmGetsVersion1) {
  fake_->connect_v2_code = nvfm::kVersionMismatch;
  ASSERT_TRUE(Read("unix:/run/fm").ok());
  EXPECT_EQ(log_.calls, (std::vector<std::string>{"init", "connect v2", "connect v1", "list",
                                                  "disconnect", "shutdown"}));
  EXPECT_EQ(log_.connects[1].version, 0x0100010cu);
  EXPECT_STREQ(log_.connects[1].address, "/run/fm");
  EXPECT_EQ(log_.connects[1].timeout_ms, 7000u);
  EXPECT_EQ(log_.connects[1].is_unix_socket, 1u);
}

TEST_F(FmClientTest, OtherConnectErrorsAreNotTriedAgain) {
  fake_->connect_v2_code = -9;
  EXPECT_EQ(Read().status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(log_.calls, (std::vector<std::string>{"init", "connect v2", "shutdown"}));
}

TEST_F(FmClientTest, FailedListStillDisconnects) {
  fake_->list_code = -8;
  EXPECT_EQ(Read().status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(log_.calls,
            (std::vector<std::string>{"init", "connect v2", "list", "disconnect", "shutdown"}));
}

struct Expected {
  const char* which;
  nvfm::Return code;
  StatusCode status;
  const char* says;
};

TEST_F(FmClientTest, CodesSayWhatToDo) {
  const Expected table[] = {
      {"init", -2, StatusCode::kInternal, "fmLibInit"},
      {"connect", -5, StatusCode::kUnavailable, "-5 (TIMEOUT)"},
      {"connect", -6, StatusCode::kUnimplemented, "libnvfm that belongs to it"},
      {"connect", -9, StatusCode::kUnavailable, "127.0.0.1:6666"},
      {"connect", -9, StatusCode::kUnavailable, "check that nvidia-fabricmanager runs"},
      {"connect", -4, StatusCode::kInternal, "-4 (UNINITIALIZED)"},
      {"list", -1, StatusCode::kInternal, "-1 (BADPARAM)"},
      {"list", -3, StatusCode::kFailedPrecondition, "FABRIC_MODE=1"},
      {"list", -4, StatusCode::kFailedPrecondition, "FM_CMD_PORT_NUMBER"},
      {"list", -5, StatusCode::kUnavailable, "asked again"},
      {"list", -6, StatusCode::kUnimplemented, "libnvfm that belongs to it"},
      {"list", -8, StatusCode::kUnavailable, "asked again"},
      {"list", -15, StatusCode::kUnavailable, "asked again"},
      {"list", -22, StatusCode::kUnavailable, "asked again"},
      {"list", -10, StatusCode::kInternal, "fault of the NVLink fabric"},
      {"list", -29, StatusCode::kInternal, "PARTITION_ROUTE_PROGRAMMING_ERROR"},
      {"list", -99, StatusCode::kInternal, "-99 (not a documented code)"},
      {"list", 1, StatusCode::kInternal, "1 (not a documented code)"},
  };
  for (const Expected& expected : table) {
    const Status status = WithCode(expected.which, expected.code);
    EXPECT_EQ(status.code(), expected.status) << status;
    EXPECT_NE(status.message().find(expected.says), absl::string_view::npos) << status;
  }
}

TEST_F(FmClientTest, InternalUnixSocketIsNamed) {
  const Status status = WithCode("list", -4, "unix:/run/fm-internal");
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("UNIX_SOCKET_PATH"), absl::string_view::npos) << status;
  EXPECT_NE(status.message().find("FM_CMD_UNIX_SOCKET_PATH"), absl::string_view::npos) << status;
}

// A partition of `modules`, as an H100 lists it.
void Add(nvfm::PartitionList& list, std::uint32_t id, std::vector<std::uint32_t> modules) {
  nvfm::PartitionInfo& info = list.partitions[list.num_partitions++];
  info.id = id;
  for (std::uint32_t module : modules) info.gpus[info.num_gpus++].physical_id = module;
}

// Partition 3 {1,3}, active or not.
std::function<void(nvfm::PartitionList&)> OnePair(bool active) {
  return [active](nvfm::PartitionList& list) {
    list.max_partitions = 1;
    Add(list, 3, {1, 3});
    list.partitions[0].is_active = active ? 1 : 0;
  };
}

Result<FabricList> Change(FmClient& client, FabricChange::Kind kind, std::vector<int> ids) {
  return client.Change(Address("127.0.0.1:6666"), absl::Seconds(7), {kind, std::move(ids)});
}

TEST_F(FmClientTest, AChangeIsOneConnectionAndReadsTheListAfterIt) {
  fake_->fill = OnePair(true);
  {
    FmClient client(std::move(fake_));
    const Result<FabricList> list = Change(client, FabricChange::Kind::kActivate, {3});
    ASSERT_TRUE(list.ok()) << list.status();
    EXPECT_TRUE(list->partitions[0].active);
    EXPECT_EQ(log_.ids, (std::vector<std::uint32_t>{3}));
    EXPECT_EQ(log_.connects[0].timeout_ms, 7000u);
    ASSERT_TRUE(Change(client, FabricChange::Kind::kSetActivated, {3}).ok());
    EXPECT_EQ(log_.ids, (std::vector<std::uint32_t>{3}));
    EXPECT_EQ(Change(client, FabricChange::Kind::kDeactivate, {3}).status().code(),
              StatusCode::kUnknown);
    EXPECT_EQ(Change(client, FabricChange::Kind::kSetActivated, {}).status().code(),
              StatusCode::kUnknown);
    EXPECT_TRUE(log_.ids.empty());
  }
  EXPECT_EQ(log_.calls,
            (std::vector<std::string>{
                "init", "connect v2", "activate", "list", "disconnect", "connect v2",
                "set activated", "list", "disconnect", "connect v2", "deactivate", "list",
                "disconnect", "connect v2", "set activated", "list", "disconnect", "shutdown"}));
}

TEST_F(FmClientTest, ARefusedChangeReadsTheListUnlessThereIsNoneToRead) {
  fake_->fill = OnePair(true);
  fake_->change_code = -17;
  FakeNvfm& fake = *fake_;
  FmClient client(std::move(fake_));
  EXPECT_TRUE(Change(client, FabricChange::Kind::kActivate, {3}).ok()) << "active already";
  for (const auto& [code, status] : {std::pair{-9, StatusCode::kUnavailable},
                                     {-3, StatusCode::kFailedPrecondition},
                                     {-6, StatusCode::kUnimplemented}}) {
    log_.calls.clear();
    fake.change_code = code;
    const Status error = Change(client, FabricChange::Kind::kActivate, {3}).status();
    EXPECT_EQ(error.code(), status) << error;
    EXPECT_EQ(FabricAnswerOf(error), (FabricAnswer{"fmActivateFabricPartition", code}));
    EXPECT_EQ(log_.calls, (std::vector<std::string>{"connect v2", "activate", "disconnect"}));
  }
}

TEST_F(FmClientTest, AChangeThatCantBeAskedForTouchesNothing) {
  fake_->lacks = "fmDeactivateFabricPartition";
  FmClient client(std::move(fake_));
  EXPECT_EQ(Change(client, FabricChange::Kind::kActivate, {-1}).status().code(),
            StatusCode::kInvalidArgument);
  const Status missing = Change(client, FabricChange::Kind::kDeactivate, {3}).status();
  EXPECT_EQ(missing.code(), StatusCode::kUnimplemented);
  EXPECT_NE(missing.message().find("fmDeactivateFabricPartition"), absl::string_view::npos);
  EXPECT_TRUE(log_.calls.empty());
}

TEST_F(FmClientTest, EveryErrorCarriesTheCallAndTheCode) {
  const std::pair<const char*, const char*> calls[] = {
      {"init", "fmLibInit"}, {"connect", "fmConnect"}, {"list", "fmGetSupportedFabricPartitions"}};
  for (const auto& [which, function] : calls) {
    for (const nvfm::Return code : {-2, -3, -4, -5, -9, -99, 1}) {
      EXPECT_EQ(FabricAnswerOf(WithCode(which, code)), (FabricAnswer{function, code}));
      EXPECT_EQ(FabricCodeOf(WithCode(which, code)), code);
    }
  }
  fake_->fill = [](nvfm::PartitionList& list) { list.num_partitions = 65; };
  EXPECT_EQ(FabricCodeOf(Read().status()), std::nullopt);
}

TEST_F(FmClientTest, ListIsConvertedWhole) {
  fake_->fill = [](nvfm::PartitionList& list) {
    list.max_partitions = 15;
    Add(list, 3, {1, 3});
    Add(list, 7, {1});
    list.partitions[0].is_active = 1;
    nvfm::PartitionGpu& gpu = list.partitions[0].gpus[1];
    std::strcpy(gpu.uuid, "GPU-1b2c");
    std::strcpy(gpu.pci_bus_id, "00000000:0F:00.0");
    gpu.nvlinks_available = 17;
    gpu.nvlinks_max = 18;
    gpu.nvlink_line_rate_mbps = 26562;
    std::strcpy(list.partitions[1].gpus[0].pci_bus_id, "00000000:00:00.0");
  };
  const Result<FabricList> list = Read();
  ASSERT_TRUE(list.ok()) << list.status();
  FabricList expected;
  expected.max_partitions = 15;
  FabricGpu plain;
  plain.physical_id = 1;
  const FabricGpu full{3, "GPU-1b2c", PciAddress{0, 0x0f, 0, 0}, 17, 18, 26562};
  expected.partitions = {{3, true, {plain, full}}, {7, false, {plain}}};
  EXPECT_EQ(*list, expected);
}

Status Broken(const std::function<void(nvfm::PartitionList&)>& wrong) {
  auto list = std::make_unique<nvfm::PartitionList>();
  Add(*list, 1, {1, 2});
  Add(*list, 2, {1});
  EXPECT_TRUE(ConvertList(*list).ok());
  wrong(*list);
  return ConvertList(*list).status();
}

#define EXPECT_BROKEN(says, ...)                                                           \
  do {                                                                                     \
    const Status status_of_it = Broken([](nvfm::PartitionList& list) { __VA_ARGS__; });    \
    EXPECT_EQ(status_of_it.code(), StatusCode::kDataLoss) << status_of_it;                 \
    EXPECT_NE(status_of_it.message().find(says), absl::string_view::npos) << status_of_it; \
  } while (false)

TEST(ConvertListTest, RefusesCountsAboveTheBuffers) {
  EXPECT_BROKEN("65 partitions", list.num_partitions = 65);
  EXPECT_BROKEN("4294967295 partitions", list.num_partitions = 0xffffffffu);
  EXPECT_BROKEN("partition 2 has 17 GPUs", list.partitions[1].num_gpus = 17);
  EXPECT_BROKEN("4294967295 GPUs", list.partitions[0].num_gpus = 0xffffffffu);
  EXPECT_BROKEN("2147483648", list.partitions[0].id = 0x80000000u);
  EXPECT_BROKEN("maxNumPartitions", list.max_partitions = 0x80000000u);
}

TEST(ConvertListTest, RefusesWhatBreaksTheTablesRules) {
  EXPECT_BROKEN("1", list.partitions[1].id = 1);
  EXPECT_BROKEN("2", list.partitions[1].num_gpus = 0);
  EXPECT_BROKEN("1", list.partitions[0].gpus[1].physical_id = 1);
}

TEST(ConvertListTest, StringsEndWithinTheirBuffers) {
  EXPECT_BROKEN("partition 1, GPU 1, uuid is not terminated",
                std::memset(list.partitions[0].gpus[1].uuid, 'x', 80));
  EXPECT_BROKEN("partition 2, GPU 0, pciBusId is not terminated",
                std::memset(list.partitions[1].gpus[0].pci_bus_id, '0', 32));
  EXPECT_BROKEN("not plain text", std::strcpy(list.partitions[0].gpus[0].uuid, "GPU-\xff\n"));
}

TEST(ConvertListTest, AddressIsAbsentOrRight) {
  EXPECT_BROKEN("pciBusId", std::strcpy(list.partitions[0].gpus[0].pci_bus_id, "0f:00"));
  EXPECT_BROKEN("pciBusId", std::strcpy(list.partitions[0].gpus[0].pci_bus_id, "N/A"));
}

TEST(ConvertListTest, AFullTableIsRight) {
  auto list = std::make_unique<nvfm::PartitionList>();
  for (std::uint32_t id = 0; id < 64; ++id) {
    Add(*list, id, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16});
  }
  const Result<FabricList> converted = ConvertList(*list);
  ASSERT_TRUE(converted.ok()) << converted.status();
  EXPECT_EQ(converted->partitions.size(), 64u);
  EXPECT_EQ(converted->partitions[63].gpus.size(), 16u);
}

}  // namespace
}  // namespace switchyard::fabric
