// SPDX-License-Identifier: Apache-2.0
// The operator's commands beside an agent in `enforce`: what they say of a pod, what they may do to
// it, and what they may not.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "tests/node/node_test.h"

namespace switchyard::sim {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class EnforceCliTest : public NodeTest {
 protected:
  void StartEnforcing() {
    MakeNode();
    StartAgent({{"fabric.mode", "enforce"}});
    WaitForLog("event=fabric_up");
    ASSERT_TRUE(WaitForKubelet([this] { return Report().allocatable > 0; }));
  }
  Finished Cli(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--config", folder_ + "/test.yaml"});
    return RunBinary(std::move(arguments));
  }
  json Json(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"-o", "json"});
    const Finished finished = Cli(std::move(arguments));
    EXPECT_EQ(finished.code, 0) << finished.output;
    return json::parse(finished.output, nullptr, false);
  }
  // The id of the only tenancy.
  std::string OnlyTenancy() const {
    const json shown = Json({"tenancies"});
    EXPECT_EQ(shown["tenancies"].size(), 1u) << shown.dump(1);
    return shown["tenancies"].empty() ? "" : shown["tenancies"][0]["id"].dump();
  }
};

TEST_F(EnforceCliTest, APodIsATenancyThatIsSeenEverywhere) {
  StartEnforcing();
  EXPECT_EQ(Json({"tenancies"})["tenancies"], json::array());
  const PodStatus pod = AddPod("a", 2);
  ASSERT_TRUE(pod.admitted) << pod.message;
  const std::set<int> modules = Modules(pod);
  const json tenancies = Json({"tenancies"});
  EXPECT_EQ(tenancies["live"], true);
  ASSERT_EQ(tenancies["tenancies"].size(), 1u);
  const json& tenancy = tenancies["tenancies"][0];
  EXPECT_EQ(tenancy["state"], "active");
  EXPECT_EQ(tenancy["active"], true);
  EXPECT_EQ(tenancy["modules"], json(modules));
  ASSERT_TRUE(PartitionOf(modules).has_value());
  EXPECT_EQ(tenancy["partition"], *PartitionOf(modules));
  const json shown = Json({"partitions"});
  for (const json& partition : shown["partitions"]) {
    const bool own = partition["id"] == tenancy["partition"];
    EXPECT_EQ(partition["active"], own) << partition.dump();
    EXPECT_EQ(partition["tenancy"], own ? tenancy["id"] : json(nullptr)) << partition.dump();
  }
  const json plan = Json({"reconcile", "--dry-run"});
  ASSERT_EQ(plan["actions"].size(), 1u) << plan.dump(1);
  EXPECT_EQ(plan["actions"][0]["action"], "keep");
  EXPECT_EQ(plan["actions"][0]["tenancy"], tenancy["id"]);
  EXPECT_EQ(Json({"journal", "verify"})["sound"], true);
  const std::string metrics = Get("/metrics");
  EXPECT_THAT(metrics, HasSubstr("\nswitchyard_activations_total 1\n"));
  EXPECT_THAT(metrics, HasSubstr("\nswitchyard_tenancies{state=\"active\"} 1\n"));
  EXPECT_THAT(metrics, HasSubstr("\nswitchyard_partitions{use=\"owned\"} 1\n"));

  EXPECT_EQ(agent_->Stop(), 0);  // what the state file says is the same tenancy
  const json remembered = Json({"tenancies"});
  EXPECT_EQ(remembered["live"], false);
  ASSERT_EQ(remembered["tenancies"].size(), 1u);
  EXPECT_EQ(remembered["tenancies"][0]["id"], tenancy["id"]);
  EXPECT_EQ(remembered["tenancies"][0]["devices"], tenancy["devices"]);
}

TEST_F(EnforceCliTest, ReleaseNeverTakesWhatIsHeld) {
  StartEnforcing();
  const PodStatus pod = AddPod("a", 2);
  ASSERT_TRUE(pod.admitted) << pod.message;
  const PciAddress device = *PciAddress::Parse(*pod.containers[0].devices.begin()->second.begin());
  const std::string id = OnlyTenancy();
  const Finished kept = Cli({"release", id, "--yes"});
  EXPECT_EQ(kept.code, 1);
  EXPECT_THAT(kept.output, HasSubstr(absl::StrCat("tenancy ", id, " is kept")));

  ASSERT_TRUE(node_->Hold(device).ok());
  EXPECT_EQ(Json({"tenancies"})["tenancies"][0]["held"], true);
  const Finished held = Cli({"release", id, "--force", "--yes"});
  EXPECT_EQ(held.code, 1);
  EXPECT_THAT(held.output, HasSubstr("held open by PID"));
  EXPECT_EQ(node_->fm().active().size(), 1u);

  ASSERT_TRUE(node_->EndHolders(device).ok());
  EXPECT_EQ(Json({"tenancies"})["tenancies"][0]["held"], false);
  const Finished released = Cli({"release", id, "--force", "--yes"});
  EXPECT_EQ(released.code, 0) << released.output;
  EXPECT_TRUE(node_->fm().active().empty());
  EXPECT_EQ(Json({"tenancies"})["tenancies"], json::array());
}

TEST_F(EnforceCliTest, ADrainedNodeTakesNoPodUntilItIsOver) {
  StartEnforcing();
  ASSERT_TRUE(AddPod("a", 1).admitted);
  const json drained = Json({"drain"});
  EXPECT_EQ(drained["draining"], true);
  EXPECT_EQ(drained["empty"], false);
  EXPECT_FALSE(AddPod("b", 1).admitted);
  EXPECT_EQ(node_->fm().active().size(), 1u);  // what runs is left alone
  EXPECT_THAT(Get("/metrics"), HasSubstr("\nswitchyard_draining 1\n"));
  EXPECT_EQ(Cli({"release", OnlyTenancy(), "--force", "--yes"}).code, 0);
  EXPECT_EQ(Json({"drain", "--wait"})["empty"], true);

  EXPECT_EQ(Json({"drain", "--off"})["draining"], false);
  ASSERT_TRUE(WaitForKubelet([this] { return Report().allocatable > 0; }));
  EXPECT_TRUE(AddPod("c", 1).admitted);
}

}  // namespace
}  // namespace switchyard::sim
