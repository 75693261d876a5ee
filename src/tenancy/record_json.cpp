// SPDX-License-Identifier: Apache-2.0
#include "tenancy/record_json.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "fabric/strict_json.h"
#include "nlohmann/json.hpp"

namespace switchyard::tenancy {
namespace {

using fabric::JsonObject;
using nlohmann::json;

constexpr size_t kMaxRecord = 64 * 1024;
constexpr size_t kMaxText = 4096;
constexpr size_t kMaxDevices = 64;  // functions of one group; a board has 16 GPUs

constexpr TenancyState kStates[] = {TenancyState::kPlanned, TenancyState::kActivating,
                                    TenancyState::kActive, TenancyState::kReleasing};

std::string TimeText(absl::Time time) {
  return absl::FormatTime(absl::RFC3339_full, time, absl::UTCTimeZone());
}

json FunctionJson(const TenancyFunction& function) {
  json out = {{"pci", function.address.ToString()}};
  if (!function.cdev.empty()) out["cdev"] = function.cdev;
  if (function.prior)
    out["prior"] = {{"driver", function.prior->driver}, {"override", function.prior->override}};
  return out;
}

json DeviceJson(const TenancyDevice& device) {
  json functions = json::array();
  for (const TenancyFunction& f : device.functions) functions.push_back(FunctionJson(f));
  return {{"pci", device.address.ToString()},
          {"backend", std::string(pci::BackendName(device.backend))},
          {"group", device.iommu_group},
          {"functions", std::move(functions)}};
}

Result<PciAddress> Address(const JsonObject& object) {
  ASSIGN_OR_RETURN(const std::string text, object.String("pci", kMaxText));
  Result<PciAddress> address = PciAddress::Parse(text);
  if (!address.ok()) return object.Bad("pci", address.status().message());
  return address;
}

Result<absl::Time> Time(const JsonObject& object, absl::string_view key) {
  ASSIGN_OR_RETURN(const std::string text, object.String(key, kMaxText));
  absl::Time time;
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full, text, &time, &error))
    return object.Bad(key, absl::StrCat(fabric::Quoted(text), " is no time: ", error));
  return time;
}

Result<TenancyFunction> ParseFunction(const json& value, absl::string_view name, std::string path) {
  ASSIGN_OR_RETURN(const JsonObject object,
                   JsonObject::Make(value, name, std::move(path), {"pci"}, {"cdev", "prior"}));
  TenancyFunction function;
  ASSIGN_OR_RETURN(function.address, Address(object));
  if (object.Has("cdev")) {
    ASSIGN_OR_RETURN(function.cdev, object.String("cdev", kMaxText));
  }
  if (object.Has("prior")) {
    ASSIGN_OR_RETURN(const JsonObject prior,
                     JsonObject::Make(value.at("prior"), name, object.PathOf("prior"),
                                      {"driver", "override"}, {}));
    function.prior.emplace();
    ASSIGN_OR_RETURN(function.prior->driver, prior.String("driver", kMaxText));
    ASSIGN_OR_RETURN(function.prior->override, prior.String("override", kMaxText));
  }
  return function;
}

Result<TenancyDevice> ParseDevice(const json& value, absl::string_view name, std::string path) {
  ASSIGN_OR_RETURN(
      const JsonObject object,
      JsonObject::Make(value, name, std::move(path), {"pci", "backend", "group", "functions"}, {}));
  TenancyDevice device;
  ASSIGN_OR_RETURN(device.address, Address(object));
  ASSIGN_OR_RETURN(const std::string backend, object.String("backend", kMaxText));
  if (backend == pci::BackendName(pci::Backend::kIommufd)) {
    device.backend = pci::Backend::kIommufd;
  } else if (backend != pci::BackendName(pci::Backend::kLegacy)) {
    return object.Bad("backend", absl::StrCat(fabric::Quoted(backend), " is no backend"));
  }
  ASSIGN_OR_RETURN(const std::int64_t group,
                   object.Integer("group", 0, std::numeric_limits<int>::max()));
  device.iommu_group = static_cast<int>(group);
  ASSIGN_OR_RETURN(const json* functions, object.Array("functions"));
  if (functions->size() > kMaxDevices) return object.Bad("functions", "there are too many");
  for (size_t i = 0; i < functions->size(); ++i) {
    ASSIGN_OR_RETURN(TenancyFunction function,
                     ParseFunction((*functions)[i], name,
                                   absl::StrCat(object.PathOf("functions"), "[", i, "]")));
    device.functions.push_back(std::move(function));
  }
  return device;
}

Result<fabric::ModuleSet> ParseModules(const JsonObject& object) {
  ASSIGN_OR_RETURN(const json* array, object.Array("modules"));
  fabric::ModuleSet modules;
  for (const json& value : *array) {
    if (!value.is_number_integer() || value < fabric::kMinModule || value > fabric::kMaxModule ||
        modules.Contains(value.get<int>())) {
      return object.Bad("modules", absl::StrCat("each is a whole number, ", fabric::kMinModule,
                                                " to ", fabric::kMaxModule, ", once"));
    }
    modules.Insert(value.get<int>());
  }
  if (modules.empty()) return object.Bad("modules", "there is none");
  return modules;
}

Result<TenancyState> ParseState(const JsonObject& object) {
  ASSIGN_OR_RETURN(const std::string text, object.String("state", kMaxText));
  for (const TenancyState state : kStates) {
    if (text == TenancyStateName(state)) return state;
  }
  return object.Bad("state", absl::StrCat(fabric::Quoted(text), " is no state"));
}

}  // namespace

std::string FormatRecord(const TenancyRecord& record) {
  json devices = json::array();
  for (const TenancyDevice& d : record.devices) devices.push_back(DeviceJson(d));
  json out = {{"version", kRecordVersion},
              {"id", record.id},
              {"state", std::string(TenancyStateName(record.state))},
              {"untilReleased", record.until_released},
              {"adopted", record.adopted},
              {"partition", record.partition},
              {"modules", record.modules.ToVector()},
              {"devices", std::move(devices)},
              {"begun", TimeText(record.begun)},
              {"changed", TimeText(record.changed)}};
  if (record.owner) out["owner"] = {{"kind", record.owner->kind}, {"key", record.owner->key}};
  if (record.boot.known()) out["boot"] = record.boot.ToString();
  if (record.lost) out["lost"] = true;
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<TenancyRecord> ParseRecord(absl::string_view text, absl::string_view name) {
  ASSIGN_OR_RETURN(const json value, fabric::ParseStrictJson(text, name, kMaxRecord));
  // Before anything else: what a newer version has to say is not ours to judge.
  if (const auto version = value.find("version");
      version != value.end() && version->is_number_integer() && *version > kRecordVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat(name, ": version ", version->dump(), " is newer than ", kRecordVersion,
                     ", the newest this switchyard knows; start the newer switchyard again"));
  }
  ASSIGN_OR_RETURN(const JsonObject object,
                   JsonObject::Make(value, name, "",
                                    {"version", "id", "state", "untilReleased", "adopted",
                                     "partition", "modules", "devices", "begun", "changed"},
                                    {"owner", "boot", "lost"}));
  RETURN_IF_ERROR(object.Integer("version", 1, kRecordVersion).status());
  TenancyRecord record;
  ASSIGN_OR_RETURN(const std::int64_t id,
                   object.Integer("id", 1, std::numeric_limits<std::int64_t>::max()));
  record.id = static_cast<std::uint64_t>(id);
  ASSIGN_OR_RETURN(record.state, ParseState(object));
  ASSIGN_OR_RETURN(record.until_released, object.Bool("untilReleased"));
  ASSIGN_OR_RETURN(record.adopted, object.Bool("adopted"));
  ASSIGN_OR_RETURN(const std::int64_t partition,
                   object.Integer("partition", std::numeric_limits<int>::min(),
                                  std::numeric_limits<int>::max()));
  record.partition = static_cast<int>(partition);
  ASSIGN_OR_RETURN(record.modules, ParseModules(object));
  ASSIGN_OR_RETURN(const json* devices, object.Array("devices"));
  if (devices->size() > kMaxDevices) return object.Bad("devices", "there are too many");
  for (size_t i = 0; i < devices->size(); ++i) {
    ASSIGN_OR_RETURN(TenancyDevice device,
                     ParseDevice((*devices)[i], name, absl::StrCat("devices[", i, "]")));
    record.devices.push_back(std::move(device));
  }
  if (object.Has("owner")) {
    ASSIGN_OR_RETURN(const JsonObject owner,
                     JsonObject::Make(value.at("owner"), name, "owner", {"kind", "key"}, {}));
    record.owner.emplace();
    ASSIGN_OR_RETURN(record.owner->kind, owner.String("kind", kMaxText));
    ASSIGN_OR_RETURN(record.owner->key, owner.String("key", kMaxText));
  }
  if (object.Has("boot")) {
    ASSIGN_OR_RETURN(const std::string boot, object.String("boot", kMaxText));
    Result<BootId> parsed = BootId::Parse(boot);
    if (!parsed.ok()) return object.Bad("boot", parsed.status().message());
    record.boot = *parsed;
  }
  if (object.Has("lost")) {
    ASSIGN_OR_RETURN(record.lost, object.Bool("lost"));
  }
  ASSIGN_OR_RETURN(record.begun, Time(object, "begun"));
  ASSIGN_OR_RETURN(record.changed, Time(object, "changed"));
  return record;
}

}  // namespace switchyard::tenancy
