// SPDX-License-Identifier: Apache-2.0
#include "agent/enforce_json.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "absl/time/time.h"

namespace switchyard::agent {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json TimeOf(absl::Time time) {
  return absl::FormatTime(absl::RFC3339_sec, time, absl::UTCTimeZone());
}

Json TenancyOf(const tenancy::TenancyView& view) {
  const tenancy::TenancyRecord& record = view.record;
  Json devices = Json::array();
  for (const tenancy::TenancyDevice& device : record.devices) {
    devices.push_back(device.address.ToString());
  }
  Json owner = nullptr;
  if (record.owner) owner = {{"kind", record.owner->kind}, {"key", record.owner->key}};
  return {{"id", record.id},
          {"state", std::string(tenancy::TenancyStateName(record.state))},
          {"owner", std::move(owner)},
          {"untilReleased", record.until_released},
          {"adopted", record.adopted},
          {"partition", OrNull(view.partition)},
          {"modules", record.modules.ToVector()},
          {"devices", std::move(devices)},
          {"begun", TimeOf(record.begun)},
          {"changed", TimeOf(record.changed)},
          {"active", view.active},
          {"listed", view.listed},
          {"unusedForSeconds",
           view.unused_for ? Json(absl::ToDoubleSeconds(*view.unused_for)) : Json(nullptr)},
          {"uncertain", view.uncertain}};
}

Json PartitionOf(const tenancy::PartitionView& view) {
  return {{"id", view.id},
          {"modules", view.modules.ToVector()},
          {"active", view.active},
          {"tenancy", OrNull(view.tenancy)},
          {"foreign", view.foreign},
          {"staleSince", view.stale_since ? TimeOf(*view.stale_since) : Json(nullptr)},
          {"blockedByTenancies", view.blocked_by_tenancies},
          {"blockedByPartitions", view.blocked_by_partitions}};
}

// Words of Fabric Manager and of process names may be no UTF-8.
std::string Text(const Json& document) {
  return document.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string EnforceJson(const tenancy::EnforceView& view) {
  Json tenancies = Json::array();
  for (const tenancy::TenancyView& one : view.tenancies) tenancies.push_back(TenancyOf(one));
  Json partitions = Json::array();
  for (const tenancy::PartitionView& one : view.partitions) partitions.push_back(PartitionOf(one));
  return Text({{"fabricUp", view.fabric_up},
               {"fabricProblem", view.fabric_problem},
               {"journalProblem", view.journal_problem},
               {"podsUnknown", view.pods_unknown},
               {"draining", view.draining},
               {"dirty", view.dirty.ToVector()},
               {"tenancies", std::move(tenancies)},
               {"partitions", std::move(partitions)}});
}

std::string PlanJson(const std::vector<tenancy::PlannedAction>& plan) {
  Json actions = Json::array();
  for (const tenancy::PlannedAction& one : plan) {
    actions.push_back({{"action", std::string(one.action)},
                       {"tenancy", OrNull(one.tenancy)},
                       {"partition", OrNull(one.partition)},
                       {"modules", one.modules.ToVector()},
                       {"why", one.why}});
  }
  return Text({{"actions", std::move(actions)}});
}

}  // namespace switchyard::agent
