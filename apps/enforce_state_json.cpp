// SPDX-License-Identifier: Apache-2.0
// The agent's answers to GET /v1/tenancies and POST /v1/reconcile/plan.
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "apps/enforce_state.h"

namespace switchyard::apps {
namespace {

using nlohmann::json;

Status Bad(absl::string_view document, absl::string_view what) {
  return absl::InternalError(absl::StrCat("the agent's answer to ", document, ": ", what,
                                          ": is it the same version as this program?"));
}

// nlohmann's exceptions on a wrong type, and ours, end in the Parse functions.
fabric::ModuleSet Modules(const json& list) {
  fabric::ModuleSet modules;
  for (const json& value : list) {
    const int module = value.get<int>();
    if (module < fabric::kMinModule || module > fabric::kMaxModule)
      throw std::out_of_range(absl::StrCat("module ", module, " is not 1 to 16"));
    modules.Insert(module);
  }
  return modules;
}

template <typename T>
std::optional<T> Maybe(const json& value) {
  return value.is_null() ? std::nullopt : std::optional<T>(value.get<T>());
}

absl::Time Time(const json& value) {
  absl::Time time;
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full, value.get<std::string>(), &time, &error))
    throw std::invalid_argument(error);
  return time;
}

tenancy::TenancyState State(const json& value) {
  const std::string name = value.get<std::string>();
  for (const auto state : {tenancy::TenancyState::kPlanned, tenancy::TenancyState::kActivating,
                           tenancy::TenancyState::kActive, tenancy::TenancyState::kReleasing}) {
    if (name == tenancy::TenancyStateName(state)) return state;
  }
  throw std::invalid_argument(absl::StrCat("state ", name, " is not known"));
}

tenancy::TenancyView Tenancy(const json& value) {
  tenancy::TenancyView view;
  view.record.id = value.at("id").get<std::uint64_t>();
  view.record.state = State(value.at("state"));
  if (const json& owner = value.at("owner"); !owner.is_null()) {
    view.record.owner =
        tenancy::Owner{owner.at("kind").get<std::string>(), owner.at("key").get<std::string>()};
  }
  view.record.until_released = value.at("untilReleased").get<bool>();
  view.record.adopted = value.at("adopted").get<bool>();
  view.partition = Maybe<int>(value.at("partition"));
  view.record.partition = view.partition.value_or(0);
  view.record.modules = Modules(value.at("modules"));
  for (const json& text : value.at("devices")) {
    const Result<PciAddress> address = PciAddress::Parse(text.get<std::string>());
    if (!address.ok()) throw std::invalid_argument(std::string(address.status().message()));
    tenancy::TenancyDevice device;
    device.address = *address;
    view.record.devices.push_back(std::move(device));
  }
  view.record.begun = Time(value.at("begun"));
  view.record.changed = Time(value.at("changed"));
  view.active = value.at("active").get<bool>();
  view.listed = value.at("listed").get<bool>();
  if (const auto seconds = Maybe<double>(value.at("unusedForSeconds")))
    view.unused_for = absl::Seconds(*seconds);
  view.uncertain = value.at("uncertain").get<bool>();
  return view;
}

tenancy::PartitionView Partition(const json& value) {
  tenancy::PartitionView view;
  view.id = value.at("id").get<int>();
  view.modules = Modules(value.at("modules"));
  view.active = value.at("active").get<bool>();
  view.tenancy = Maybe<std::uint64_t>(value.at("tenancy"));
  view.foreign = value.at("foreign").get<bool>();
  if (!value.at("staleSince").is_null()) view.stale_since = Time(value.at("staleSince"));
  view.blocked_by_tenancies = value.at("blockedByTenancies").get<std::vector<std::uint64_t>>();
  view.blocked_by_partitions = value.at("blockedByPartitions").get<std::vector<int>>();
  return view;
}

std::string NumberText(const json& value) { return value.is_null() ? "" : value.dump(); }

}  // namespace

Result<EnforceState> ParseEnforceState(absl::string_view text) {
  try {
    const json object = json::parse(text.begin(), text.end());
    EnforceState state;
    state.live = true;
    tenancy::EnforceView& view = state.view;
    view.fabric_up = object.at("fabricUp").get<bool>();
    view.fabric_problem = object.at("fabricProblem").get<std::string>();
    view.journal_problem = object.at("journalProblem").get<std::string>();
    view.pods_unknown = object.at("podsUnknown").get<bool>();
    view.draining = object.at("draining").get<bool>();
    view.dirty = Modules(object.at("dirty"));
    for (const json& one : object.at("tenancies")) view.tenancies.push_back(Tenancy(one));
    for (const json& one : object.at("partitions")) view.partitions.push_back(Partition(one));
    return state;
  } catch (const std::exception& error) {
    return Bad("/v1/tenancies", error.what());
  }
}

Result<std::vector<PlannedStep>> ParsePlan(absl::string_view text) {
  try {
    const json object = json::parse(text.begin(), text.end());
    std::vector<PlannedStep> plan;
    for (const json& one : object.at("actions")) {
      plan.push_back({one.at("action").get<std::string>(), NumberText(one.at("tenancy")),
                      NumberText(one.at("partition")), Modules(one.at("modules")),
                      one.at("why").get<std::string>()});
    }
    return plan;
  } catch (const std::exception& error) {
    return Bad("/v1/reconcile/plan", error.what());
  }
}

}  // namespace switchyard::apps
