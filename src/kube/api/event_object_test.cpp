// SPDX-License-Identifier: Apache-2.0
#include "kube/api/event_object.h"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace switchyard::kube::api {
namespace {

using nlohmann::json;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(UserEvent, IsForWhatAUserMustActOn) {
  const auto orphan = ToUserEvent({"tenancy_orphaned",
                                   Severity::kWarning,
                                   "somebody holds it",
                                   {{"tenancy", "7"}, {"owner", "pod default/vm"}, {"x", ""}}});
  ASSERT_TRUE(orphan.has_value());
  EXPECT_EQ(orphan->reason, "TenancyOrphaned");
  EXPECT_TRUE(orphan->warning);
  EXPECT_EQ(orphan->message, "somebody holds it [tenancy=7 owner=pod default/vm]");
  EXPECT_FALSE(ToUserEvent({"allocate", Severity::kInfo, "devices allocated", {}}));
  EXPECT_FALSE(ToUserEvent({"tenancy_refused", Severity::kWarning, "no", {}}));
}

TEST(UserEvent, IsAboutThePodThatHasTheDevices) {
  const auto pod_of = [](absl::string_view name, const std::string& owner) {
    return ToUserEvent({name, Severity::kError, "x", {{"owner", owner}}})->pod;
  };
  EXPECT_EQ(pod_of("partition_lost", "pod default/vm"), "default/vm");
  EXPECT_EQ(pod_of("partition_lost", "claim default/c"), "");
  // Its pod has gone, and another may have the name.
  EXPECT_EQ(pod_of("tenancy_orphaned", "pod default/vm"), "");
}

TEST(UserEvent, GoodNewsEndsATrouble) {
  EXPECT_EQ(Ends("fabric_up"), "fabric_down");
  EXPECT_EQ(Ends("fabric_down"), "");
  EXPECT_EQ(Ends("allocate"), "");
  const auto up = ToUserEvent({"fabric_up", Severity::kInfo, "answers", {}});
  ASSERT_TRUE(up.has_value());
  EXPECT_FALSE(up->warning);
  EXPECT_FALSE(ToUserEvent({"table_changed", Severity::kInfo, "known for the first time", {}}));
}

TEST(UserEvent, ALongMessageIsCutBetweenCharacters) {
  for (size_t more = 0; more < 4; ++more) {
    std::string message(more, 'x');
    for (int i = 0; i < 500; ++i) message += "\xe2\x82\xac";  // the euro sign, three bytes
    const auto event = ToUserEvent({"allocate_failed", Severity::kError, message, {}});
    EXPECT_LE(event->message.size(), kMaxMessageBytes);
    EXPECT_GT(event->message.size(), kMaxMessageBytes - 4);
    EXPECT_NO_THROW((void)json(event->message).dump()) << more;
  }
}

TEST(EventJson, IsWhatKubectlDescribeNodeFinds) {
  const UserEvent event{"FabricDown", true, "it does not answer", ""};
  const Occurrences when{absl::FromUnixSeconds(1'700'000'000), absl::FromUnixSeconds(1'700'000'060),
                         3};
  const Place node = NodePlace("n1");
  EXPECT_EQ(EventsPath(node), "/api/v1/namespaces/default/events");
  const json object = json::parse(EventJson("n1.17", node, event, when, "n1"));
  EXPECT_EQ(object, json::parse(R"({
    "apiVersion": "v1", "kind": "Event",
    "metadata": {"name": "n1.17", "namespace": "default"},
    "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "n1"},
    "reason": "FabricDown", "type": "Warning", "message": "it does not answer",
    "source": {"component": "switchyard", "host": "n1"},
    "reportingComponent": "switchyard", "reportingInstance": "n1",
    "firstTimestamp": "2023-11-14T22:13:20Z", "lastTimestamp": "2023-11-14T22:14:20Z",
    "count": 3})"));
  EXPECT_EQ(json::parse(PatchJson(when)),
            json::parse(R"({"count": 3, "lastTimestamp": "2023-11-14T22:14:20Z"})"));
}

TEST(EventJson, OfAPodIsInItsNamespace) {
  const auto pod = PodPlace(R"({"metadata": {"name": "vm", "namespace": "a", "uid": "u-1"},
                               "spec": {"nodeName": "n1"}})",
                            "n1");
  ASSERT_TRUE(pod.has_value());
  EXPECT_EQ(EventsPath(*pod), "/api/v1/namespaces/a/events");
  const json object =
      json::parse(EventJson("n1.17", *pod, {"R", false, "m", "a/vm"}, Occurrences{}, "n1"));
  EXPECT_EQ(object["involvedObject"], json::parse(R"({"apiVersion": "v1", "kind": "Pod",
    "name": "vm", "namespace": "a", "uid": "u-1"})"));
  EXPECT_EQ(object["metadata"]["namespace"], "a");
  EXPECT_EQ(object["type"], "Normal");
}

TEST(PodPlace, IsNoneForAnotherOfTheSameName) {
  EXPECT_FALSE(PodPlace(R"({"metadata": {"name": "vm", "namespace": "a", "uid": "u-1"},
                            "spec": {"nodeName": "n2"}})",
                        "n1"));
  for (const char* odd : {"", "[]", "{}", R"({"metadata": 3})", R"({"metadata": {"name": 1}})"})
    EXPECT_FALSE(PodPlace(odd, "")) << odd;
}

// The names that the table of docs/events.md marks with a dagger.
TEST(UserEvent, DocumentationMarksTheSameOnes) {
  std::ifstream file(std::string(SWITCHYARD_SOURCE_DIR) + "/docs/events.md");
  std::set<std::string> marked;
  std::set<std::string> published;
  for (std::string line; std::getline(file, line) && line != "## Metrics";) {
    if (!absl::StartsWith(line, "| `")) continue;
    const std::vector<std::string> columns = absl::StrSplit(line, '|');
    const std::vector<std::string> words = absl::StrSplit(columns.at(1), '`');
    for (size_t i = 1; i < words.size(); i += 2) {
      if (absl::StrContains(columns.at(1), "\xe2\x80\xa0")) marked.insert(words[i]);
      if (ToUserEvent({words[i], Severity::kError, "x", {}})) published.insert(words[i]);
    }
  }
  EXPECT_THAT(published, Not(IsEmpty()));
  EXPECT_EQ(marked, published);
  // and none is missing there
  EXPECT_EQ(published.size(), PublishedCount());
}

}  // namespace
}  // namespace switchyard::kube::api
