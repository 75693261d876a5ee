// SPDX-License-Identifier: Apache-2.0
#include "agent/gauges.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace switchyard::agent {
namespace {

using Labels = std::vector<std::pair<std::string, std::string>>;

// The value of one sample, or nothing.
std::optional<double> Value(const std::vector<Gauge>& gauges, const std::string& name,
                            const Labels& labels = {}) {
  for (const Gauge& gauge : gauges) {
    if (gauge.name != name) continue;
    for (const Gauge::Sample& sample : gauge.samples) {
      if (sample.labels == labels) return sample.value;
    }
  }
  return std::nullopt;
}

tenancy::FabricView ViewOfPair() {
  tenancy::FabricView view;
  view.known = true;
  view.up = true;
  view.read_at = absl::FromUnixSeconds(1234);
  view.table.partitions = {
      {3, true, {1, 3}, true}, {4, false, {2, 4}, true}, {5, false, {5}, false}};
  view.busy = {1, 3};
  view.map_errors = {"a file", "a contradiction"};
  return view;
}

TEST(Gauges, CountPartitionsByStateAndBusyModules) {
  const auto gauges = MakeGauges(tenancy::FabricMode::kAdvise, ViewOfPair(), {}, nullptr);
  EXPECT_EQ(Value(gauges, "switchyard_fabric_up"), 1);
  EXPECT_EQ(Value(gauges, "switchyard_fabric_partitions", {{"state", "active"}}), 1);
  EXPECT_EQ(Value(gauges, "switchyard_fabric_partitions", {{"state", "inactive"}}), 1);
  EXPECT_EQ(Value(gauges, "switchyard_fabric_partitions", {{"state", "incomplete"}}), 1);
  EXPECT_EQ(Value(gauges, "switchyard_fabric_list_read_timestamp_seconds"), 1234);
  EXPECT_EQ(Value(gauges, "switchyard_modules_busy"), 2);
  EXPECT_EQ(Value(gauges, "switchyard_module_map_errors"), 2);
}

TEST(Gauges, AFabricThatIsOffHasNoFabricGauges) {
  const auto gauges = MakeGauges(tenancy::FabricMode::kOff, ViewOfPair(), {}, nullptr);
  EXPECT_EQ(Value(gauges, "switchyard_fabric_up"), std::nullopt);
  EXPECT_EQ(Value(gauges, "switchyard_fabric_partitions", {{"state", "active"}}), std::nullopt);
}

TEST(Gauges, AnUnknownListHasNoTimestamp) {
  const auto gauges = MakeGauges(tenancy::FabricMode::kAdvise, {}, {}, nullptr);
  EXPECT_EQ(Value(gauges, "switchyard_fabric_up"), 0);
  EXPECT_EQ(Value(gauges, "switchyard_fabric_list_read_timestamp_seconds"), std::nullopt);
}

TEST(Gauges, ResourcesHaveTheirHealthAndRegistration) {
  kube::DevicePlugins::ResourceStatus resource;
  resource.resource = "nvidia.com/pgpu";
  resource.streaming = true;
  resource.devices = 8;
  resource.healthy = 7;
  const auto gauges = MakeGauges(tenancy::FabricMode::kOff, {}, {resource}, nullptr);
  EXPECT_EQ(Value(gauges, "switchyard_registered", {{"resource", "nvidia.com/pgpu"}}), 1);
  EXPECT_EQ(
      Value(gauges, "switchyard_devices", {{"resource", "nvidia.com/pgpu"}, {"health", "healthy"}}),
      7);
  EXPECT_EQ(Value(gauges, "switchyard_devices",
                  {{"resource", "nvidia.com/pgpu"}, {"health", "unhealthy"}}),
            1);
}

}  // namespace
}  // namespace switchyard::agent
