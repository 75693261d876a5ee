// SPDX-License-Identifier: Apache-2.0
#include "fabric/helper_protocol.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "fabric/fabric_answer.h"
#include "fabric/fabric_control.h"

namespace switchyard::fabric {
namespace {

TEST(HelperProtocol, RequestsComeBackWhole) {
  HelperRequest request;
  request.library = "/usr/lib/libnvfm.so.1";
  request.address = *FabricAddress::Parse("unix:/run/fm");
  request.connect_timeout = absl::Milliseconds(7500);
  const Result<HelperRequest> back = DecodeRequest(EncodeRequest(request));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->call, HelperRequest::Call::kReadPartitions);
  EXPECT_EQ(back->library, request.library);
  EXPECT_EQ(back->address.ToString(), "unix:/run/fm");
  EXPECT_EQ(back->connect_timeout, absl::Milliseconds(7500));

  request.call = HelperRequest::Call::kReadModuleIds;
  const Result<HelperRequest> modules = DecodeRequest(EncodeRequest(request));
  ASSERT_TRUE(modules.ok()) << modules.status();
  EXPECT_EQ(modules->call, HelperRequest::Call::kReadModuleIds);
}

TEST(HelperProtocol, ChangesComeBackWhole) {
  using Kind = FabricChange::Kind;
  for (const FabricChange& change :
       {FabricChange{Kind::kActivate, {3}}, FabricChange{Kind::kDeactivate, {0}},
        FabricChange{Kind::kSetActivated, {3, 5, 2147483647}},
        FabricChange{Kind::kSetActivated, {}}}) {
    HelperRequest request;
    request.call = HelperRequest::Call::kChange;
    request.library = "l";
    request.address = *FabricAddress::Parse("127.0.0.1:6666");
    request.connect_timeout = absl::Milliseconds(1);
    request.change = change;
    const Result<HelperRequest> back = DecodeRequest(EncodeRequest(request));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->call, HelperRequest::Call::kChange);
    EXPECT_EQ(back->change.kind, change.kind);
    EXPECT_EQ(back->change.partitions, change.partitions);
    EXPECT_EQ(back->address.ToString(), "127.0.0.1:6666");
  }
}

TEST(HelperProtocol, FabricManagersCodeComesBackWithTheError) {
  const Status error =
      WithFabricAnswer(absl::AlreadyExistsError("in use"), {"fmActivateFabricPartition", -24});
  const Status back = DecodeReply(EncodeReply(error)).status();
  EXPECT_EQ(back, error);
  EXPECT_EQ(FabricCodeOf(back), -24);
  EXPECT_EQ(FabricCodeOf(Annotate(back, "activating")), -24);
  EXPECT_EQ(FabricCodeOf(DecodeReply(EncodeReply(absl::AbortedError("x"))).status()), std::nullopt);
}

TEST(HelperProtocol, RepliesComeBackWhole) {
  for (const std::string& bytes : {std::string(), std::string("+\0-\xff", 4)}) {
    const Result<std::string> back = DecodeReply(EncodeReply(bytes));
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(*back, bytes);
  }
  const Status error = absl::UnavailableError("FM \"is\" down");
  EXPECT_EQ(DecodeReply(EncodeReply(error)).status(), error);
}

TEST(HelperProtocol, BytesThatAreNoUtf8AreReplaced) {
  const Status back = DecodeReply(EncodeReply(absl::NotFoundError("lib\xff.so"))).status();
  EXPECT_EQ(back.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(back.message().find(".so"), absl::string_view::npos);
}

TEST(HelperProtocol, MalformedRepliesAreInternalErrors) {
  for (const char* bad :
       {"", "[]", "{}", "{\"code\": 0, \"message\": \"x\"}", "{\"code\": 14}",
        "{\"code\": 17, \"message\": \"x\"}", "{\"code\": \"1\", \"message\": \"x\"}",
        // 2^32 + 14 and 2^64 - 2^32 + 14 are no codes either.
        R"({"code": 4294967310, "message": "x"})",
        R"({"code": 18446744069414584334, "message": "x"})",
        R"({"code": 14, "message": "x", "fm": -9})",
        R"({"code": 14, "message": "x", "fm": {"function": "f"}})",
        R"({"code": 14, "message": "x", "fm": {"function": "f", "code": 0}})",
        R"({"code": 14, "message": "x", "fm": {"function": "", "code": -9}})",
        R"({"code": 14, "message": "x", "fm": {"function": "a b", "code": -9}})"}) {
    EXPECT_EQ(DecodeReply(absl::StrCat("-", bad)).status().message(),
              "the fabric helper's reply is malformed")
        << bad;
  }
  const std::string whole = EncodeReply(absl::UnavailableError("x"));
  ASSERT_EQ(DecodeReply(whole).status().code(), absl::StatusCode::kUnavailable);
  for (const std::string& bad : {std::string(), whole.substr(1), "?" + whole.substr(1)})
    EXPECT_EQ(DecodeReply(bad).status().code(), absl::StatusCode::kInternal) << bad;
}

TEST(HelperProtocol, MalformedRequestsAreErrors) {
  for (const char* bad : {"", "{}", R"({"call": "activate", "library": ""})",
                          R"({"call": "activate", "library": "", "address": "127.0.0.1:1",
                              "connect_ms": 1})",
                          R"({"call": "activate", "library": "", "address": "127.0.0.1:1",
                              "connect_ms": 1, "partitions": 3})",
                          R"({"call": "activate", "library": "", "address": "127.0.0.1:1",
                              "connect_ms": 1, "partitions": []})",
                          R"({"call": "activate", "library": "", "address": "127.0.0.1:1",
                              "connect_ms": 1, "partitions": [4294967299]})",
                          R"({"call": "deactivate", "library": "", "address": "127.0.0.1:1",
                              "connect_ms": 1, "partitions": [-3]})",
                          R"({"call": "set_activated", "library": "", "address": "127.0.0.1:1",
                              "connect_ms": 1, "partitions": [3, 3]})",
                          R"({"call": "set_activated", "library": "", "address": "127.0.0.1:1",
                              "connect_ms": 18446744073709551615, "partitions": []})",
                          R"({"call": "reset", "library": "", "address": "127.0.0.1:1",
                              "connect_ms": 1, "partitions": [3]})",
                          R"({"call": "partitions", "library": ""})",
                          R"({"call": "partitions", "library": "", "address": "x",
                              "connect_ms": 1})"}) {
    EXPECT_FALSE(DecodeRequest(bad).ok()) << bad;
  }
}

TEST(HelperProtocol, ModulesComeBackWhole) {
  const ModuleEntries entries = {{PciAddress{0, 0x0f, 0, 0}, 5}, {PciAddress{8, 1, 0, 0}, 16}};
  const Result<ModuleEntries> back = DecodeModules(EncodeModules(entries));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, entries);
  for (const char* bad : {"[]", R"({"0f:00.0": 0})", R"({"0f:00.0": 17})", R"({"0f:00.0": "1"})",
                          R"({"0f": 1})", R"({"0f:00.0": 1.5})"}) {
    EXPECT_EQ(DecodeModules(bad).status().code(), absl::StatusCode::kInternal) << bad;
  }
}

}  // namespace
}  // namespace switchyard::fabric
