// SPDX-License-Identifier: Apache-2.0
// The commands about tenancies, against an agent's socket and against a state file.
#include <gmock/gmock.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "agent/enforce_json.h"
#include "agent/http_server.h"
#include "agent/status_json.h"
#include "apps/enforce_state.h"
#include "apps/testing/run_program.h"
#include "store/store.h"
#include "tenancy/store_journal.h"

namespace switchyard::apps {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::Ran;
using testing::RunSwitchyard;
using testing::TemporaryFolder;

tenancy::TenancyRecord Record(std::uint64_t id, fabric::ModuleSet modules, const char* pod) {
  tenancy::TenancyRecord record;
  record.id = id;
  record.state = tenancy::TenancyState::kActive;
  if (pod != nullptr) record.owner = tenancy::Owner{"pod", pod};
  record.partition = 4;
  record.modules = modules;
  for (const fabric::ModuleId module : modules.ToVector()) {
    tenancy::TenancyDevice device;
    device.address = *PciAddress::Parse(absl::StrCat("0000:1", module, ":00.0"));
    device.iommu_group = module;
    device.functions = {{device.address, "", std::nullopt}};
    record.devices.push_back(device);
  }
  record.boot = {1, 2};
  record.begun = absl::FromUnixSeconds(1000);
  record.changed = absl::FromUnixSeconds(2000);
  return record;
}

// Of a node with two tenancies, a foreign partition and some that are blocked.
tenancy::EnforceView View() {
  tenancy::EnforceView view;
  view.fabric_up = true;
  view.tenancies.push_back({Record(3, {1, 3}, "default/a"), 4, true, true, std::nullopt, false});
  view.tenancies.push_back(
      {Record(7, {5}, nullptr), std::nullopt, false, false, absl::Seconds(42), false, true});
  view.partitions = {{4, {1, 3}, true, 3, false, std::nullopt, {}, {}},
                     {5, {2, 4}, false, std::nullopt, false, std::nullopt, {}, {}},
                     {6, {6}, true, std::nullopt, true, absl::FromUnixSeconds(3000), {}, {}},
                     {9, {1, 2, 3, 4}, false, std::nullopt, false, std::nullopt, {3}, {}},
                     {10, {6, 8}, false, std::nullopt, false, std::nullopt, {}, {6}}};
  view.dirty = {5};
  view.draining = true;
  return view;
}

class EnforceCliTest : public ::testing::Test {
 protected:
  // An agent that says `view_`, and answers what is asked to be done with `answer_`.
  void Serve() {
    const Status listening = server_.ListenUnix(
        socket(),
        [this](const agent::HttpRequest& request) -> agent::HttpResponse {
          if (request.target == "/v1/tenancies") return {200, "", agent::EnforceJson(view_)};
          if (request.target == "/v1/fabric") {
            return {200, "",
                    agent::FabricJson(tenancy::FabricMode::kEnforce, FabricView(), nullptr)};
          }
          return {404, "", "no"};
        },
        [this](const agent::HttpRequest& request) {
          const absl::MutexLock lock(&mutex_);
          asked_.push_back(request.target);
          return answer_;
        });
    ASSERT_TRUE(listening.ok()) << listening;
    server_.Start();
  }
  tenancy::FabricView FabricView() const {
    tenancy::FabricView fabric;
    fabric.known = fabric.up = true;
    fabric.read_at = absl::FromUnixSeconds(5000);
    for (const tenancy::PartitionView& one : view_.partitions)
      fabric.table.partitions.push_back({one.id, one.active, one.modules, true});
    return fabric;
  }
  Ran Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(),
                     {"--paths-socket", socket(), "--paths-state", folder_.Path("state"),
                      "--paths-host-root", folder_.Path("root")});
    return RunSwitchyard(arguments);
  }
  json Json(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"-o", "json"});
    const Ran ran = Run(arguments);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    return json::parse(ran.out, nullptr, false);
  }
  std::vector<std::string> asked() {
    const absl::MutexLock lock(&mutex_);
    return asked_;
  }
  std::string socket() const { return folder_.Path("a.sock"); }

  const TemporaryFolder folder_;
  tenancy::EnforceView view_ = View();
  agent::HttpResponse answer_ = {200, "", agent::EnforceJson(View())};
  absl::Mutex mutex_;
  std::vector<std::string> asked_;
  agent::HttpServer server_;
};

TEST(EnforceStateTest, ReadsTheAgentsDocument) {
  const auto state = ParseEnforceState(agent::EnforceJson(View()));
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_TRUE(state->live);
  const tenancy::EnforceView& view = state->view;
  EXPECT_TRUE(view.fabric_up);
  EXPECT_TRUE(view.draining);
  EXPECT_EQ(view.dirty, fabric::ModuleSet{5});
  ASSERT_EQ(view.tenancies.size(), 2u);
  const tenancy::TenancyView& first = view.tenancies[0];
  EXPECT_EQ(first.record.id, 3u);
  EXPECT_EQ(first.record.state, tenancy::TenancyState::kActive);
  EXPECT_EQ(first.record.owner, (tenancy::Owner{"pod", "default/a"}));
  EXPECT_EQ(first.record.modules, (fabric::ModuleSet{1, 3}));
  EXPECT_EQ(first.record.begun, absl::FromUnixSeconds(1000));
  EXPECT_EQ(first.record.changed, absl::FromUnixSeconds(2000));
  ASSERT_EQ(first.record.devices.size(), 2u);
  EXPECT_EQ(first.record.devices[1].address.ToString(), "0000:13:00.0");
  EXPECT_EQ(first.partition, 4);
  EXPECT_TRUE(first.active);
  EXPECT_TRUE(first.listed);
  EXPECT_EQ(first.unused_for, std::nullopt);
  const tenancy::TenancyView& second = view.tenancies[1];
  EXPECT_EQ(second.record.owner, std::nullopt);
  EXPECT_EQ(second.partition, std::nullopt);
  EXPECT_EQ(second.unused_for, absl::Seconds(42));
  EXPECT_TRUE(second.uncertain);
  ASSERT_EQ(view.partitions.size(), 5u);
  EXPECT_EQ(view.partitions[0].tenancy, 3u);
  EXPECT_TRUE(view.partitions[2].foreign);
  EXPECT_EQ(view.partitions[2].stale_since, absl::FromUnixSeconds(3000));
  EXPECT_THAT(view.partitions[3].blocked_by_tenancies, ElementsAre(3u));
  EXPECT_THAT(view.partitions[4].blocked_by_partitions, ElementsAre(6));
}

TEST(EnforceStateTest, RefusesWhatIsNoSuchDocument) {
  for (const char* text : {"", "[]", "{}", "nonsense"}) {
    EXPECT_EQ(ParseEnforceState(text).status().code(), absl::StatusCode::kInternal) << text;
    EXPECT_EQ(ParsePlan(text).status().code(), absl::StatusCode::kInternal) << text;
  }
  for (const auto& [from, to] :
       {std::pair("\"active\",\"owner", "\"asleep\",\"owner"), std::pair("[1,3]", "[1,17]"),
        std::pair("0000:11:00.0", "nonsense"), std::pair("1970-01", "soon")}) {
    std::string broken = agent::EnforceJson(View());
    ASSERT_NE(broken.find(from), std::string::npos) << from;
    broken.replace(broken.find(from), std::strlen(from), to);
    EXPECT_EQ(ParseEnforceState(broken).status().code(), absl::StatusCode::kInternal) << to;
  }
}

TEST_F(EnforceCliTest, TenanciesShowOwnerStateAndWhoSaysWhat) {
  Serve();
  folder_.Write("root/proc/1/comm", "init\n");
  const json shown = Json({"tenancies"});
  EXPECT_EQ(shown["live"], true);
  EXPECT_EQ(shown["draining"], true);
  EXPECT_EQ(shown["podsUnknown"], false);
  ASSERT_EQ(shown["tenancies"].size(), 2u);
  const json& first = shown["tenancies"][0];
  EXPECT_EQ(first["id"], 3);
  EXPECT_EQ(first["owner"], json({{"kind", "pod"}, {"key", "default/a"}}));
  EXPECT_EQ(first["partition"], 4);
  EXPECT_EQ(first["state"], "active");
  EXPECT_EQ(first["devices"], json({"0000:11:00.0", "0000:13:00.0"}));
  EXPECT_EQ(first["listed"], true);
  EXPECT_TRUE(first["unusedForSeconds"].is_null());
  const json& second = shown["tenancies"][1];
  EXPECT_TRUE(second["owner"].is_null());
  EXPECT_EQ(second["unusedForSeconds"], 42);
  const Ran table = Run({"tenancies"});
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out, AllOf(HasSubstr("TENANCY  OWNER          PARTITION  STATE"),
                               HasSubstr("3        pod default/a  4          active"),
                               HasSubstr("7        not known yet  vanished   active (uncertain)"),
                               HasSubstr("42s"), HasSubstr("the node is being drained"),
                               HasSubstr("dirty: Fabric Manager lost partitions of modules 5")));
  EXPECT_THAT(table.out, Not(HasSubstr("knows its pods")));
}

TEST_F(EnforceCliTest, TenanciesSayWhyWhatKubeletDoesNotListIsKept) {
  view_.pods_unknown = true;
  Serve();
  folder_.Write("root/proc/1/comm", "init\n");
  EXPECT_EQ(Json({"tenancies"})["podsUnknown"], true);
  EXPECT_THAT(Run({"tenancies"}).out,
              HasSubstr("kubelet has not shown yet that it knows its pods"));
}

TEST_F(EnforceCliTest, PartitionsSayWhoseAndWhatBlocks) {
  Serve();
  const Ran table = Run({"partitions"});
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out,
              AllOf(HasSubstr("4          2     yes     tenancy 3 of pod default/a"),
                    HasSubstr("5          2     no      free "),
                    HasSubstr("6          1     yes     foreign, unused for "),
                    HasSubstr("9          4     no      blocked by tenancy 3 "),
                    HasSubstr("10         2     no      blocked by foreign partition 6 "),
                    HasSubstr("the node is being drained")));
  const json shown = Json({"partitions"});
  EXPECT_EQ(shown["partitions"][0]["tenancy"], 3);
  EXPECT_EQ(shown["partitions"][2]["staleSince"], "1970-01-01T00:50:00+00:00");
  EXPECT_EQ(shown["partitions"][3]["blockedByTenancies"], json({3}));
  EXPECT_EQ(shown["partitions"][4]["blockedByPartitions"], json({6}));
}

TEST_F(EnforceCliTest, ReleaseAsksTheAgentAndPassesOnItsRefusal) {
  Serve();
  EXPECT_EQ(Json({"release", "3", "--yes"}), json({{"released", 3}}));
  EXPECT_EQ(Run({"release", "7", "--force", "--yes"}).out, "released tenancy 7\n");
  EXPECT_THAT(asked(), ElementsAre("/v1/release/3", "/v1/release/7/force"));
  {
    const absl::MutexLock lock(&mutex_);
    answer_ = {409, "", "tenancy 3 is held open by PID 9\n"};
  }
  const Ran refused = Run({"release", "3", "--force", "--yes"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_EQ(refused.err, "switchyard: tenancy 3 is held open by PID 9\n");
  EXPECT_EQ(refused.out, "");
}

TEST_F(EnforceCliTest, ReleaseNeedsATenancyAndSomebodyToAsk) {
  Serve();
  const Ran unknown = Run({"release", "4", "--yes"});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_THAT(unknown.err, HasSubstr("there is no tenancy 4"));
  const Ran mute = Run({"release", "3"});  // a test has no terminal
  EXPECT_EQ(mute.exit_code, 2);
  EXPECT_THAT(mute.err, HasSubstr("give --yes"));
  EXPECT_THAT(asked(), IsEmpty());
}

TEST_F(EnforceCliTest, DrainSaysWhatIsLeftAndWhenNothingIs) {
  Serve();
  const Ran left = Run({"drain"});
  EXPECT_EQ(left.exit_code, 0) << left.err;
  EXPECT_THAT(left.out, HasSubstr("2 are left: tenancy 3 of pod default/a, tenancy 7"));
  const Ran late = Run({"drain", "--wait=1ms"});
  EXPECT_EQ(late.exit_code, 1);
  EXPECT_THAT(late.err, HasSubstr("the node is not empty after 1ms: tenancy 3"));
  tenancy::EnforceView empty;
  empty.draining = true;
  {
    const absl::MutexLock lock(&mutex_);
    answer_ = {200, "", agent::EnforceJson(empty)};
  }
  EXPECT_EQ(Json({"drain", "--wait"}),
            json({{"draining", true}, {"empty", true}, {"tenancies", json::array()}}));
  (void)Run({"drain", "--off"});
  EXPECT_THAT(asked(),
              ElementsAre("/v1/drain/on", "/v1/drain/on", "/v1/drain/on", "/v1/drain/off"));
}

TEST_F(EnforceCliTest, ReconcileShowsThePlan) {
  answer_ = {200, "",
             agent::PlanJson({{"release", 3, 4, {1, 3}, "nobody has had it for the grace time"},
                              {"report", std::nullopt, 6, {6}, "active, of nobody"}})};
  Serve();
  const Ran table = Run({"reconcile", "--dry-run"});
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out, AllOf(HasSubstr("release  3        4          1,3      nobody has had it"),
                               HasSubstr("report   -        6          6        active, of")));
  EXPECT_EQ(Json({"reconcile", "--dry-run"})["actions"][0]["tenancy"], 3);
  EXPECT_THAT(asked(), ElementsAre("/v1/reconcile/plan", "/v1/reconcile/plan"));
}

TEST_F(EnforceCliTest, WithoutAnAgentTheStateFileIsReadAndNothingIsDone) {
  const Ran none = Run({"tenancies"});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.err, HasSubstr("there is no state file in"));
  EXPECT_EQ(Run({"journal", "verify"}).exit_code, 1);
  {
    const auto opened = store::Store::Open(folder_.Path("state"), store::Store::Mode::kReadWrite);
    ASSERT_TRUE(opened.ok()) << opened.status();
    tenancy::StoreJournal journal(*opened->store);
    ASSERT_TRUE(journal.Write(Record(3, {1, 3}, "default/a")).ok());
  }
  const json shown = Json({"tenancies"});
  EXPECT_EQ(shown["live"], false);
  ASSERT_EQ(shown["tenancies"].size(), 1u);
  EXPECT_EQ(shown["tenancies"][0]["id"], 3);
  EXPECT_TRUE(shown["tenancies"][0]["listed"].is_null());
  EXPECT_EQ(shown["lost"], json::array());
  for (const std::vector<std::string>& change :
       {std::vector<std::string>{"release", "3", "--yes"}, {"drain"}, {"reconcile", "--dry-run"}}) {
    const Ran ran = Run(change);
    EXPECT_EQ(ran.exit_code, 1) << change[0];
    EXPECT_THAT(ran.err, HasSubstr("no agent listens on")) << change[0];
  }
  EXPECT_EQ(Json({"journal", "verify"}), json({{"sound", true}, {"problems", json::array()}}));
  {
    const auto opened = store::Store::Open(folder_.Path("state"), store::Store::Mode::kReadWrite);
    ASSERT_TRUE(opened.ok()) << opened.status();
    ASSERT_TRUE(opened->store->Put("tenancy", "4", "{damaged").ok());
  }
  const Ran damaged = Run({"journal", "verify"});
  EXPECT_EQ(damaged.exit_code, 1);
  EXPECT_THAT(damaged.err, HasSubstr("journal tenancy 4"));
  const Ran exported = Run({"journal", "export"});
  EXPECT_EQ(exported.exit_code, 0) << exported.err;
  EXPECT_EQ(json::parse(exported.out)["records"]["4"], "{damaged");
  const Ran both = Run({"tenancies"});
  EXPECT_THAT(both.out, AllOf(HasSubstr("no agent is running"), HasSubstr("pod default/a"),
                              HasSubstr("not readable: journal tenancy 4")));
}

TEST_F(EnforceCliTest, AnAgentThatEnforcesNothingSaysSo) {
  ASSERT_TRUE(server_
                  .ListenUnix(socket(),
                              [](const agent::HttpRequest&) {
                                return agent::HttpResponse{409, "", "fabric.mode is advise\n"};
                              })
                  .ok());
  server_.Start();
  const Ran ran = Run({"tenancies"});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_EQ(ran.err, "switchyard: fabric.mode is advise\n");
  const Ran drain = Run({"drain"});  // a server without POST: an older agent
  EXPECT_EQ(drain.exit_code, 1);
  EXPECT_THAT(drain.err, AllOf(HasSubstr("status 405"), Not(HasSubstr("advise"))));
}

}  // namespace
}  // namespace switchyard::apps
