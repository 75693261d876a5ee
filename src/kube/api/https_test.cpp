// SPDX-License-Identifier: Apache-2.0
// Against a real TLS server.
#include "kube/api/https.h"

#include <gmock/gmock.h>

#include <thread>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "kube/api/testing/service_account.h"
#include "kube/api/testing/tls_server.h"

namespace switchyard::kube::api {
namespace {

using ::testing::HasSubstr;
using testing::Received;
using testing::Reply;
using testing::ServiceAccount;
using testing::TestCa;
using testing::TlsServer;

class HttpsTest : public ::testing::Test {
 protected:
  HttpsTest() { account_.Write("ca.crt", ca_.certificate()); }

  Result<Answer> Get(const TlsServer& server, const std::string& host = "127.0.0.1",
                     HttpsOptions options = {absl::Minutes(1)}) {
    return MakeHttps(account_.At(host, server.port()), options)
        ->Send({Method::kGet, "/version", ""}, "t0ken");
  }
  static TlsServer::Handler Says(Reply reply) {
    return [reply](const Received&) { return reply; };
  }

  ServiceAccount account_;
  TestCa ca_;
  const testing::Certificate certificate_ = ca_.Issue("IP:127.0.0.1");
};

TEST_F(HttpsTest, SendsARequestAndReadsItsAnswer) {
  Received got;
  const TlsServer server(certificate_, [&](const Received& received) {
    got = received;
    return Reply{201, "made"};
  });
  const auto https = MakeHttps(account_.At("127.0.0.1", server.port()), {absl::Minutes(1)});
  auto answer = https->Send({Method::kPost, "/api/v1/namespaces/default/events", "{}"}, "t0ken");
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status, 201);
  EXPECT_EQ(answer->body, "made");
  EXPECT_EQ(got.method, "POST");
  EXPECT_EQ(got.target, "/api/v1/namespaces/default/events");
  EXPECT_EQ(got.host, "127.0.0.1:" + std::to_string(server.port()));
  EXPECT_EQ(got.authorization, "Bearer t0ken");
  EXPECT_EQ(got.content_type, "application/json");
  EXPECT_EQ(got.body, "{}");

  answer = https->Send({Method::kPatch, "/x", "{\"count\":2}"}, "newer");
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(got.method, "PATCH");
  EXPECT_EQ(got.authorization, "Bearer newer");
  EXPECT_EQ(got.content_type, "application/merge-patch+json");
}

TEST_F(HttpsTest, AnErrorIsAnAnswerToo) {
  const TlsServer server(certificate_, Says({.status = 429, .body = "busy", .retry_after = "3"}));
  const auto answer = Get(server);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status, 429);
  EXPECT_EQ(answer->body, "busy");
  EXPECT_EQ(answer->retry_after, absl::Seconds(3));
}

TEST_F(HttpsTest, ARetryAfterOfDaysIsBounded) {
  const TlsServer server(certificate_, Says({.status = 503, .retry_after = "999999"}));
  const auto answer = Get(server);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->retry_after, absl::Hours(1));
}

TEST_F(HttpsTest, AServerOfAnotherCaIsNotTrusted) {
  const TlsServer server(TestCa().Issue("IP:127.0.0.1"), Says({}));
  const Status status = Get(server).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("certificate"));
}

TEST_F(HttpsTest, ACertificateForAnotherAddressIsNotTrusted) {
  const TlsServer server(ca_.Issue("IP:127.0.0.2"), Says({}));
  const Status status = Get(server).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("IP address mismatch"));
}

TEST_F(HttpsTest, AServerKnownByNameMustHaveItInItsCertificate) {
  const TlsServer right(ca_.Issue("DNS:localhost"), Says({}));
  EXPECT_TRUE(Get(right, "localhost").ok());
  const TlsServer wrong(ca_.Issue("DNS:api.test"), Says({}));
  const Status status = Get(wrong, "localhost").status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("hostname mismatch"));
  // and an address is no name
  const TlsServer address(certificate_, Says({}));
  EXPECT_FALSE(Get(address, "localhost").ok());
}

TEST_F(HttpsTest, ANewCaCountsAtOnce) {
  const TestCa newer;
  const TlsServer server(newer.Issue("IP:127.0.0.1"), Says({}));
  const auto https = MakeHttps(account_.At("127.0.0.1", server.port()), {absl::Minutes(1)});
  EXPECT_FALSE(https->Send({Method::kGet, "/", ""}, "t").ok());
  account_.Write("ca.crt", ca_.certificate() + newer.certificate());  // as while it is rotated
  EXPECT_TRUE(https->Send({Method::kGet, "/", ""}, "t").ok());
}

TEST_F(HttpsTest, WithoutACaNothingIsSent) {
  bool asked = false;
  const TlsServer server(certificate_, [&](const Received&) {
    asked = true;
    return Reply{};
  });
  account_.Write("ca.crt", "no certificate\n");
  EXPECT_TRUE(absl::IsUnavailable(Get(server).status()));
  account_.Remove("ca.crt");
  EXPECT_FALSE(Get(server).ok());
  EXPECT_FALSE(asked);
}

TEST_F(HttpsTest, AnAnswerWithoutEndIsCut) {
  const std::string body(100'000, 'x');
  for (const bool chunked : {false, true}) {
    const TlsServer server(certificate_, Says({.body = body, .chunked = chunked}));
    const auto whole = Get(server, "127.0.0.1", {absl::Minutes(1), body.size()});
    ASSERT_TRUE(whole.ok()) << whole.status();
    EXPECT_EQ(whole->body, body);
    const Status cut = Get(server, "127.0.0.1", {absl::Minutes(1), body.size() - 1}).status();
    EXPECT_TRUE(absl::IsOutOfRange(cut)) << cut;
  }
}

TEST_F(HttpsTest, AServerThatDoesNotAnswerIsGivenUp) {
  const TlsServer server(certificate_, Says({.never = true}));
  const Status status = Get(server, "127.0.0.1", {absl::Milliseconds(100)}).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
}

TEST_F(HttpsTest, NobodyThereIsUnavailable) {
  std::uint16_t port = 0;
  {
    const TlsServer server(certificate_, Says({}));
    port = server.port();
  }
  const auto https = MakeHttps(account_.At("127.0.0.1", port), {absl::Minutes(1)});
  EXPECT_TRUE(absl::IsUnavailable(https->Send({Method::kGet, "/", ""}, "t").status()));
}

TEST_F(HttpsTest, CloseEndsTheRequestThatRunsAndAllThatCome) {
  absl::Notification asked;
  const TlsServer server(certificate_, [&](const Received&) {
    asked.Notify();
    return Reply{.never = true};
  });
  const auto https = MakeHttps(account_.At("127.0.0.1", server.port()), {absl::Hours(1)});
  std::thread closer([&] {
    asked.WaitForNotification();
    https->Close();
  });
  EXPECT_TRUE(absl::IsCancelled(https->Send({Method::kGet, "/", ""}, "t").status()));
  closer.join();
  EXPECT_TRUE(absl::IsCancelled(https->Send({Method::kGet, "/", ""}, "t").status()));
}

}  // namespace
}  // namespace switchyard::kube::api
