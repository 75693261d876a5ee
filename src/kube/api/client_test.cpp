// SPDX-License-Identifier: Apache-2.0
#include "kube/api/client.h"

#include <gmock/gmock.h>

#include "kube/api/testing/fake_api_server.h"
#include "kube/api/testing/service_account.h"

namespace switchyard::kube::api {
namespace {

using ::testing::AllOf;
using testing::FakeApiServer;
using ::testing::HasSubstr;
using ::testing::Le;
using testing::ServiceAccount;
using ::testing::SizeIs;

class ClientTest : public ::testing::Test {
 protected:
  Status CallAnswered(Answer answer) {
    server_.SetRule([answer](const FakeApiServer::Call&) { return answer; });
    return client_.Call({Method::kGet, "/version", ""}).status();
  }

  ServiceAccount account_;
  FakeApiServer server_;
  Client client_{account_.At("10.96.0.1", 443), server_};
};

TEST_F(ClientTest, SendsTheTokenOfTheMoment) {
  ASSERT_TRUE(client_.Call({Method::kGet, "/version", ""}).ok());
  account_.Write("token", "second\n");  // kubelet has rotated it
  ASSERT_TRUE(client_.Call({Method::kGet, "/version", ""}).ok());
  const auto calls = server_.Take();
  ASSERT_THAT(calls, SizeIs(2));
  EXPECT_EQ(calls[0].token, "first");
  EXPECT_EQ(calls[1].token, "second");
}

TEST_F(ClientTest, ATokenThatHasJustBeenReplacedIsReadAgain) {
  server_.SetRule([this](const FakeApiServer::Call& call) {
    account_.Write("token", "second\n");
    return Answer{call.token == "second" ? 200 : 401, "yes", {}};
  });
  const auto answer = client_.Call({Method::kGet, "/version", ""});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(*answer, "yes");
}

TEST_F(ClientTest, ATokenThatIsRefusedIsNotSentTwice) {
  EXPECT_TRUE(absl::IsUnauthenticated(CallAnswered({401, "", {}})));
  EXPECT_THAT(server_.Take(), SizeIs(1));
}

TEST_F(ClientTest, WithoutATokenNobodyIsAskedAndItMayHelpToRepeat) {
  account_.Remove("token");
  EXPECT_TRUE(absl::IsUnavailable(client_.Call({Method::kGet, "/version", ""}).status()));
  EXPECT_THAT(server_.Take(), SizeIs(0));
}

TEST_F(ClientTest, ErrorsSayWhatTheServerSays) {
  const Status status =
      CallAnswered({403, R"({"kind":"Status","message":"events is forbidden","code":403})", {}});
  EXPECT_TRUE(absl::IsPermissionDenied(status));
  EXPECT_EQ(status.message(), "https://10.96.0.1:443: HTTP 403: events is forbidden");
  EXPECT_EQ(RetryAfter(status), absl::ZeroDuration());
}

TEST_F(ClientTest, WhateverAnsweredInItsPlaceIsQuotedShortly) {
  const Status status = CallAnswered({502, "\n" + std::string(5000, 'x'), {}});
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("HTTP 502: \\nxxx"), SizeIs(Le(600))));
}

TEST_F(ClientTest, EachStatusHasItsCode) {
  EXPECT_TRUE(absl::IsInvalidArgument(CallAnswered({422, "", {}})));
  EXPECT_TRUE(absl::IsInvalidArgument(CallAnswered({400, "", {}})));
  EXPECT_TRUE(absl::IsNotFound(CallAnswered({404, "", {}})));
  EXPECT_TRUE(absl::IsAlreadyExists(CallAnswered({409, "", {}})));
  EXPECT_TRUE(absl::IsUnavailable(CallAnswered({500, "", {}})));
  EXPECT_TRUE(absl::IsUnknown(CallAnswered({302, "", {}})));
}

TEST_F(ClientTest, HowLongToWaitIsInTheError) {
  const Status status = CallAnswered({429, "", absl::Seconds(7)});
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_EQ(RetryAfter(Annotate(status, "x")), absl::Seconds(7));
}

}  // namespace
}  // namespace switchyard::kube::api
