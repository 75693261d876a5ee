// SPDX-License-Identifier: Apache-2.0
#include "fabric/helper_protocol.h"

#include <gtest/gtest.h>

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

TEST(HelperProtocol, RepliesComeBackWhole) {
  const Result<std::string> text = DecodeReply(EncodeReply(std::string("{\"a\": \"\n\"}")));
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text, "{\"a\": \"\n\"}");
  const Status error = absl::UnavailableError("FM \"is\" down");
  EXPECT_EQ(DecodeReply(EncodeReply(error)).status(), error);
}

TEST(HelperProtocol, BytesThatAreNoUtf8AreReplaced) {
  const Status back = DecodeReply(EncodeReply(absl::NotFoundError("lib\xff.so"))).status();
  EXPECT_EQ(back.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(back.message().find(".so"), absl::string_view::npos);
}

TEST(HelperProtocol, MalformedRepliesAreInternalErrors) {
  for (const char* bad : {"", "[]", "{}", "{\"code\": 0, \"message\": \"x\"}", "{\"code\": 14}",
                          "{\"code\": 17, \"message\": \"x\"}", "{\"result\": 1}",
                          "{\"code\": \"1\", \"message\": \"x\"}", "{\"result\": \"x"}) {
    EXPECT_EQ(DecodeReply(bad).status().code(), absl::StatusCode::kInternal) << bad;
  }
}

TEST(HelperProtocol, MalformedRequestsAreErrors) {
  for (const char* bad : {"", "{}", R"({"call": "activate", "library": ""})",
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
