// SPDX-License-Identifier: Apache-2.0
#include "agent/enforce_gauges.h"

#include <gtest/gtest.h>

namespace switchyard::agent {
namespace {

using Labels = std::vector<std::pair<std::string, std::string>>;
using tenancy::TenancyState;

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

tenancy::TenancyView Tenancy(std::uint64_t id, TenancyState state) {
  tenancy::TenancyView view;
  view.record.id = id;
  view.record.state = state;
  return view;
}

TEST(EnforceGauges, CountTenanciesByStateOrphanedAndUncertain) {
  tenancy::EnforceView view;
  view.tenancies = {Tenancy(1, TenancyState::kActive), Tenancy(2, TenancyState::kActive),
                    Tenancy(3, TenancyState::kActive), Tenancy(4, TenancyState::kActive),
                    Tenancy(5, TenancyState::kReleasing)};
  view.tenancies[1].orphaned = true;
  view.tenancies[4].uncertain = true;
  const auto gauges = MakeEnforceGauges(view, 4096);
  EXPECT_EQ(Value(gauges, "switchyard_tenancies", {{"state", "active"}}), 4);
  EXPECT_EQ(Value(gauges, "switchyard_tenancies", {{"state", "releasing"}}), 1);
  EXPECT_EQ(Value(gauges, "switchyard_tenancies", {{"state", "planned"}}), 0);
  EXPECT_EQ(Value(gauges, "switchyard_tenancies_orphaned"), 1);
  EXPECT_EQ(Value(gauges, "switchyard_tenancies_uncertain"), 1);
  EXPECT_EQ(Value(gauges, "switchyard_journal_records"), 5);
  EXPECT_EQ(Value(gauges, "switchyard_journal_bytes"), 4096);
}

TEST(EnforceGauges, EachPartitionHasOneUse) {
  tenancy::EnforceView view;
  view.partitions.resize(6);
  view.partitions[0].tenancy = 1;
  view.partitions[1].foreign = true;
  view.partitions[1].blocked_by_partitions = {9};
  view.partitions[2].blocked_by_tenancies = {1};
  view.partitions[3].blocked_by_partitions = {1};
  view.partitions[4].modules = {5};
  view.dirty = {5, 7};
  const auto gauges = MakeEnforceGauges(view, std::nullopt);
  EXPECT_EQ(Value(gauges, "switchyard_partitions", {{"use", "owned"}}), 1);
  EXPECT_EQ(Value(gauges, "switchyard_partitions", {{"use", "foreign"}}), 1);
  EXPECT_EQ(Value(gauges, "switchyard_partitions", {{"use", "blocked"}}), 3);
  EXPECT_EQ(Value(gauges, "switchyard_partitions", {{"use", "free"}}), 1);
  EXPECT_EQ(Value(gauges, "switchyard_modules_dirty"), 2);
  EXPECT_EQ(Value(gauges, "switchyard_journal_bytes"), std::nullopt);
}

TEST(EnforceGauges, CountersCarryTheirReasonsAndCodes) {
  tenancy::EnforceView view;
  view.activations = 7;
  view.deactivations = 3;
  view.fabric_failures = {{"activate -7", 2}, {"deactivate DEADLINE_EXCEEDED", 1}};
  view.refusals = {{"held", 4}};
  view.actions = {{"release", 5}};
  view.draining = true;
  view.journal_problem = "it can't be written";
  const auto gauges = MakeEnforceGauges(view, std::nullopt);
  EXPECT_EQ(Value(gauges, "switchyard_activations_total"), 7);
  EXPECT_EQ(Value(gauges, "switchyard_deactivations_total"), 3);
  EXPECT_EQ(
      Value(gauges, "switchyard_fabric_failures_total", {{"change", "activate"}, {"code", "-7"}}),
      2);
  EXPECT_EQ(Value(gauges, "switchyard_fabric_failures_total",
                  {{"change", "deactivate"}, {"code", "DEADLINE_EXCEEDED"}}),
            1);
  EXPECT_EQ(Value(gauges, "switchyard_refusals_total", {{"reason", "held"}}), 4);
  EXPECT_EQ(Value(gauges, "switchyard_refusals_total", {{"reason", "dirty"}}),
            0);  // for increase()
  EXPECT_EQ(Value(gauges, "switchyard_reconciler_actions_total", {{"action", "release"}}), 5);
  EXPECT_EQ(Value(gauges, "switchyard_draining"), 1);
  EXPECT_EQ(Value(gauges, "switchyard_journal_usable"), 0);
  for (const Gauge& gauge : gauges) {
    EXPECT_EQ(gauge.counter, gauge.name.ends_with("_total")) << gauge.name;
  }
}

}  // namespace
}  // namespace switchyard::agent
