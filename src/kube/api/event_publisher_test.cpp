// SPDX-License-Identifier: Apache-2.0
#include "kube/api/event_publisher.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "kube/api/testing/fake_api_server.h"
#include "kube/api/testing/service_account.h"
#include "tenancy/testing/fakes.h"

namespace switchyard::kube::api {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using testing::FakeApiServer;
using ::testing::IsEmpty;
using testing::ServiceAccount;
using ::testing::SizeIs;

constexpr char kPod[] = R"({"metadata": {"name": "vm", "namespace": "a", "uid": "u-1"},
                           "spec": {"nodeName": "n1"}})";
constexpr char kNodeEvents[] = "/api/v1/namespaces/default/events";

class PublisherTest : public ::testing::Test {
 protected:
  void Refused(const std::string& why = "no partition") {
    publisher_.Report({"allocate_failed", Severity::kError, why, {}});
  }
  void Lost() {
    publisher_.Report({"partition_lost", Severity::kError, "inactive", {{"owner", "pod a/vm"}}});
  }
  // Everything that is due now is told.
  absl::Duration Run() {
    absl::Duration wait;
    do wait = publisher_.Step();
    while (wait == absl::ZeroDuration());
    return wait;
  }
  void Answer(int status, absl::Duration retry_after = absl::ZeroDuration()) {
    server_.SetRule(
        [=](const FakeApiServer::Call&) { return api::Answer{status, "{}", retry_after}; });
  }
  // "POST /path", for each request since the last time.
  std::vector<std::string> Requests() {
    std::vector<std::string> lines;
    for (const auto& call : server_.Take()) lines.push_back(Line(call.request));
    return lines;
  }
  static std::string Line(const Request& request) {
    const char* const method = request.method == Method::kGet    ? "GET "
                               : request.method == Method::kPost ? "POST "
                                                                 : "PATCH ";
    return method + request.path;
  }

  ServiceAccount account_;
  FakeApiServer server_;
  Client client_{account_.At("10.96.0.1", 443), server_};
  tenancy::testing::FakeEvents log_;
  SimClock clock_;
  EventPublisher publisher_{"n1", client_, log_, clock_};
};

TEST_F(PublisherTest, EveryEventGoesOnAndThoseForUsersAreCreated) {
  publisher_.Report({"allocate", Severity::kInfo, "devices allocated", {}});
  Refused();
  EXPECT_THAT(log_.TakeNames(), ElementsAre("allocate", "allocate_failed"));
  EXPECT_THAT(server_.Take(), IsEmpty());  // Report itself asks nobody
  EXPECT_EQ(Run(), absl::InfiniteDuration());
  const auto calls = server_.Take();
  ASSERT_THAT(calls, SizeIs(1));
  EXPECT_EQ(Line(calls[0].request), absl::StrCat("POST ", kNodeEvents));
  const json object = json::parse(calls[0].request.body);
  EXPECT_EQ(object["reason"], "AllocateFailed");
  EXPECT_EQ(object["involvedObject"]["name"], "n1");
  EXPECT_TRUE(absl::StartsWith(object["metadata"]["name"].get<std::string>(), "n1."));
  EXPECT_EQ(publisher_.stats().sent, 1u);
  EXPECT_EQ(publisher_.stats().up, true);
}

TEST_F(PublisherTest, TheSameAgainIsACountOnTheSameObject) {
  Refused();
  Run();
  const json first = json::parse(server_.Take().at(0).request.body);
  for (int i = 0; i < 3; ++i) Refused();
  EXPECT_EQ(Run(), EventPublisher::kBetweenPatches);
  EXPECT_THAT(Requests(), IsEmpty());  // not yet
  clock_.Advance(EventPublisher::kBetweenPatches);
  Run();
  const auto calls = server_.Take();
  ASSERT_THAT(calls, SizeIs(1));
  EXPECT_EQ(Line(calls[0].request),
            absl::StrCat("PATCH ", kNodeEvents, "/", first["metadata"]["name"].get<std::string>()));
  EXPECT_EQ(json::parse(calls[0].request.body)["count"], 4);
  EXPECT_EQ(publisher_.stats().sent, 4u);

  clock_.Advance(EventPublisher::kSeries + absl::Seconds(1));
  Refused();
  Run();
  EXPECT_THAT(Requests(), ElementsAre(absl::StrCat("POST ", kNodeEvents)));  // old news is over
}

TEST_F(PublisherTest, AnObjectThatWasDeletedIsMadeAnewUnderAnotherName) {
  Refused();
  Run();
  const json first = json::parse(server_.Take().at(0).request.body);
  server_.SetRule([](const FakeApiServer::Call& call) {
    return api::Answer{call.request.method == Method::kPatch ? 404 : 201, "{}", {}};
  });
  clock_.Advance(EventPublisher::kBetweenPatches);
  Refused();
  Run();
  const auto calls = server_.Take();
  ASSERT_THAT(calls, SizeIs(2));
  EXPECT_EQ(calls[1].request.method, Method::kPost);
  EXPECT_NE(json::parse(calls[1].request.body)["metadata"]["name"], first["metadata"]["name"]);
}

TEST_F(PublisherTest, AnEventOfAPodIsAttachedToItByItsUid) {
  server_.SetRule([](const FakeApiServer::Call& call) {
    return api::Answer{200, call.request.method == Method::kGet ? kPod : "{}", {}};
  });
  Lost();
  Run();
  const auto calls = server_.Take();
  ASSERT_THAT(calls, SizeIs(2));
  EXPECT_EQ(Line(calls[0].request), "GET /api/v1/namespaces/a/pods/vm");
  EXPECT_EQ(Line(calls[1].request), "POST /api/v1/namespaces/a/events");
  EXPECT_EQ(json::parse(calls[1].request.body)["involvedObject"]["uid"], "u-1");
  clock_.Advance(EventPublisher::kBetweenPatches);
  Lost();
  Run();
  EXPECT_THAT(server_.Take(), SizeIs(1));  // the pod is known
}

TEST_F(PublisherTest, WithoutItsPodAnEventIsTheNodes) {
  for (const int status : {404, 403}) {
    server_.SetRule([=](const FakeApiServer::Call& call) {
      return api::Answer{call.request.method == Method::kGet ? status : 201, "{}", {}};
    });
    Lost();
    Run();
    EXPECT_THAT(Requests(), ElementsAre("GET /api/v1/namespaces/a/pods/vm",
                                        absl::StrCat("POST ", kNodeEvents)));
    clock_.Advance(EventPublisher::kSeries + absl::Seconds(1));
  }
}

TEST_F(PublisherTest, ANamespaceThatIsGoingLeavesTheEventToTheNode) {
  server_.SetRule([](const FakeApiServer::Call& call) {
    if (call.request.method == Method::kGet) return api::Answer{200, kPod, {}};
    return api::Answer{call.request.path == kNodeEvents ? 201 : 403, "{}", {}};
  });
  Lost();
  Run();
  EXPECT_THAT(Requests(),
              ElementsAre("GET /api/v1/namespaces/a/pods/vm", "POST /api/v1/namespaces/a/events",
                          absl::StrCat("POST ", kNodeEvents)));
  EXPECT_EQ(publisher_.stats().sent, 1u);
}

TEST_F(PublisherTest, AnOwnerThatIsNoNameIsNotAskedFor) {
  publisher_.Report({"partition_lost", Severity::kError, "x", {{"owner", "pod a/../../secrets"}}});
  Run();
  EXPECT_THAT(Requests(), ElementsAre(absl::StrCat("POST ", kNodeEvents)));
}

TEST_F(PublisherTest, AServerThatIsAwayIsAskedAgainLessAndLess) {
  Answer(503);
  Refused();
  EXPECT_EQ(Run(), absl::Seconds(1));
  EXPECT_EQ(Run(), absl::Seconds(1));
  EXPECT_THAT(Requests(), SizeIs(1));
  EXPECT_EQ(publisher_.stats().up, false);
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(Run(), absl::Seconds(2));
  clock_.Advance(absl::Seconds(2));
  Answer(201);
  Run();
  EXPECT_THAT(Requests(), SizeIs(2));
  EXPECT_EQ(publisher_.stats().sent, 1u);
  EXPECT_EQ(publisher_.stats().dropped, 0u);
  // said once each
  EXPECT_THAT(log_.TakeNames(),
              ElementsAre("allocate_failed", "kubernetes_events_failed", "kubernetes_events_sent"));
}

TEST_F(PublisherTest, ARepeatedRequestMakesNoSecondObject) {
  Answer(504);  // it may have been made
  Refused();
  Run();
  const json first = json::parse(server_.Take().at(0).request.body);
  server_.SetRule([](const FakeApiServer::Call& call) {
    return api::Answer{call.request.method == Method::kPost ? 409 : 200, "{}", {}};
  });
  Refused();
  clock_.Advance(absl::Seconds(1));
  Run();
  const auto calls = server_.Take();
  ASSERT_THAT(calls, SizeIs(2));
  EXPECT_EQ(json::parse(calls[0].request.body)["metadata"]["name"], first["metadata"]["name"]);
  EXPECT_EQ(json::parse(calls[1].request.body)["count"], 2);
  EXPECT_EQ(publisher_.stats().sent, 2u);
}

TEST_F(PublisherTest, RetryAfterIsKept) {
  Answer(429, absl::Seconds(20));
  Refused();
  EXPECT_EQ(Run(), absl::Seconds(20));
}

TEST_F(PublisherTest, WhatIsForbiddenIsDroppedAndCounted) {
  Answer(403);
  Refused();
  Refused();
  EXPECT_EQ(Run(), absl::InfiniteDuration());
  EXPECT_THAT(Requests(), SizeIs(1));
  EXPECT_EQ(publisher_.stats().dropped, 2u);
  EXPECT_EQ(publisher_.stats().sent, 0u);
}

TEST_F(PublisherTest, OldNewsIsGivenUp) {
  Answer(503);
  Refused();
  Run();
  clock_.Advance(EventPublisher::kGiveUp + absl::Seconds(1));
  Answer(201);
  (void)server_.Take();
  EXPECT_EQ(Run(), absl::InfiniteDuration());
  EXPECT_THAT(Requests(), IsEmpty());
  EXPECT_EQ(publisher_.stats().dropped, 1u);
}

TEST_F(PublisherTest, KeepsNoMoreThanItsBound) {
  Answer(503);
  for (size_t i = 0; i < EventPublisher::kMaxKept + 3; ++i) Refused(absl::StrCat("number ", i));
  EXPECT_EQ(publisher_.stats().dropped, 3u);
}

TEST_F(PublisherTest, WhatWasToldMakesRoom) {
  Refused("the first");
  Run();
  for (size_t i = 0; i < EventPublisher::kMaxKept; ++i) Refused(absl::StrCat("number ", i));
  EXPECT_EQ(publisher_.stats().dropped, 0u);
}

TEST_F(PublisherTest, AStormIsSentSlowly) {
  for (int i = 0; i < EventPublisher::kBurst + 2; ++i) Refused(absl::StrCat("number ", i));
  EXPECT_GT(Run(), absl::ZeroDuration());
  EXPECT_THAT(server_.Take(), SizeIs(EventPublisher::kBurst));
  clock_.Advance(EventPublisher::kRefill + absl::Milliseconds(1));
  Run();
  EXPECT_THAT(server_.Take(), SizeIs(1));
}

TEST_F(PublisherTest, GoodNewsIsForThoseWhoWereToldTheBad) {
  publisher_.Report({"fabric_up", Severity::kInfo, "answers", {}});
  Run();
  EXPECT_THAT(Requests(), IsEmpty());
  publisher_.Report({"fabric_down", Severity::kWarning, "does not", {}});
  for (int i = 0; i < 2; ++i) publisher_.Report({"fabric_up", Severity::kInfo, "answers", {}});
  Run();
  const auto calls = server_.Take();
  ASSERT_THAT(calls, SizeIs(2));
  EXPECT_EQ(json::parse(calls[1].request.body)["reason"], "FabricUp");
  EXPECT_EQ(json::parse(calls[1].request.body)["count"], 1);
}

// The server's thread waits in a request for ever, and neither Report nor the end does.
TEST_F(PublisherTest, AServerThatHangsHoldsUpNobody) {
  absl::Notification asked;
  absl::Notification closed;
  class Hanging final : public Transport {
   public:
    Hanging(absl::Notification& asked, absl::Notification& closed)
        : asked_(asked), closed_(closed) {}
    Result<api::Answer> Send(const Request&, absl::string_view) override {
      asked_.Notify();
      closed_.WaitForNotification();
      return absl::CancelledError("closed");
    }
    void Close() override { closed_.Notify(); }
    absl::Notification& asked_;
    absl::Notification& closed_;
  } hanging(asked, closed);
  Client client(account_.At("10.96.0.1", 443), hanging);
  {
    EventPublisher publisher("n1", client, log_, clock_);
    publisher.Start();
    publisher.Report({"allocate_failed", Severity::kError, "x", {}});
    asked.WaitForNotification();
    publisher.Report({"allocate_failed", Severity::kError, "y", {}});
  }
  EXPECT_TRUE(closed.HasBeenNotified());
  EXPECT_THAT(log_.TakeNames(), ElementsAre("allocate_failed", "allocate_failed"));
}

TEST_F(PublisherTest, TheThreadSendsWhatWasNotedBeforeAndAfterItsStart) {
  absl::Mutex mutex;
  int posted = 0;
  server_.SetRule([&](const FakeApiServer::Call&) {
    const absl::MutexLock lock(&mutex);
    ++posted;
    return api::Answer{201, "{}", {}};
  });
  Refused("before");
  publisher_.Start();
  Refused("after");
  const absl::MutexLock lock(&mutex);
  mutex.Await(absl::Condition(+[](int* n) { return *n == 2; }, &posted));
}

TEST_F(PublisherTest, ANamesLengthIsBounded) {
  const std::string node = std::string(234, 'n') + ".-" + std::string(17, 'n');
  EventPublisher publisher(node, client_, log_, clock_);
  publisher.Report({"allocate_failed", Severity::kError, "x", {}});
  EXPECT_EQ(publisher.Step(), absl::ZeroDuration());
  const auto name =
      json::parse(server_.Take().at(0).request.body)["metadata"]["name"].get<std::string>();
  EXPECT_EQ(name.size(), 234u + 17u);
}

}  // namespace
}  // namespace switchyard::kube::api
