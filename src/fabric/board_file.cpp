// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "fabric/partition_table.h"
#include "fabric/strict_json.h"

namespace switchyard::fabric {
namespace {

using nlohmann::json;

constexpr size_t kMaxBytes = 1024 * 1024;
constexpr size_t kMaxText = 4096;

Result<ModuleSet> ToModules(const JsonObject& object) {
  ASSIGN_OR_RETURN(const json* gpus, object.Array("gpus"));
  if (gpus->empty()) return object.Bad("gpus", "must name at least one GPU");
  ModuleSet modules;
  for (const json& gpu : *gpus) {
    const auto module = gpu.is_number_unsigned() ? gpu.get<std::uint64_t>() : 0;
    if (module < std::uint64_t{kMinModule} || module > std::uint64_t{kMaxModule}) {
      return object.Bad("gpus", absl::StrCat("each must be a module id, a whole number from ",
                                             kMinModule, " to ", kMaxModule));
    }
    if (modules.Contains(static_cast<ModuleId>(module)))
      return object.Bad("gpus", absl::StrCat("module ", module, " appears twice"));
    modules.Insert(static_cast<ModuleId>(module));
  }
  return modules;
}

Result<Partition> ToPartition(const json& value, absl::string_view name, std::string path) {
  ASSIGN_OR_RETURN(const JsonObject object, JsonObject::Make(value, name, std::move(path),
                                                             {"id", "gpus"}, {"nvlinksPerGpu"}));
  Partition partition;
  constexpr int kMaxInt = std::numeric_limits<int>::max();
  ASSIGN_OR_RETURN(const std::int64_t id, object.Integer("id", 0, kMaxInt));
  partition.id = static_cast<int>(id);
  ASSIGN_OR_RETURN(partition.modules, ToModules(object));
  if (object.Has("nvlinksPerGpu")) {
    RETURN_IF_ERROR(object.Integer("nvlinksPerGpu", 0, kMaxInt).status());
  }
  return partition;
}

// Keys that say nothing about partitions are the simulator's; only their kind is checked here.
Status CheckOtherKeys(const JsonObject& object) {
  for (absl::string_view key : {"board", "description", "note", "gpuIdentity", "returnCodes"}) {
    if (object.Has(key)) RETURN_IF_ERROR(object.String(key, kMaxText).status());
  }
  for (absl::string_view key : {"nvlinkLineRateMBps", "nvlinksPerGpu"}) {
    if (object.Has(key))
      RETURN_IF_ERROR(object.Integer(key, 0, std::numeric_limits<int>::max()).status());
  }
  if (object.Has("devices")) RETURN_IF_ERROR(object.Array("devices").status());
  return OkStatus();
}

}  // namespace

Result<PartitionTable> ParseBoard(absl::string_view text, absl::string_view file_name) {
  ASSIGN_OR_RETURN(const json value, ParseStrictJson(text, file_name, kMaxBytes));
  ASSIGN_OR_RETURN(const JsonObject object,
                   JsonObject::Make(value, file_name, "", {"board", "partitions"},
                                    {"description", "note", "gpuIdentity", "returnCodes",
                                     "nvlinkLineRateMBps", "nvlinksPerGpu", "devices"}));
  RETURN_IF_ERROR(CheckOtherKeys(object));
  ASSIGN_OR_RETURN(const json* partitions, object.Array("partitions"));
  if (partitions->size() > size_t{kMaxPartitions}) {
    return object.Bad("partitions", absl::StrCat(partitions->size(), " partitions, but ",
                                                 kMaxPartitions, " is the limit"));
  }
  PartitionTable table;
  for (const json& element : *partitions) {
    const std::string path = absl::StrCat("partitions[", table.partitions.size(), "]");
    ASSIGN_OR_RETURN(const Partition partition, ToPartition(element, file_name, path));
    if (table.Find(partition.id) != nullptr)
      return BadJson(file_name, path, absl::StrCat("id ", partition.id, " appears twice"));
    table.modules = table.modules | partition.modules;
    table.partitions.push_back(partition);
  }
  std::sort(table.partitions.begin(), table.partitions.end(),
            [](const Partition& a, const Partition& b) { return a.id < b.id; });
  return table;
}

}  // namespace switchyard::fabric
