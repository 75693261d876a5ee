// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "fabric/partition_table.h"
#include "fabric/strict_json.h"

namespace switchyard::fabric {
namespace {

using nlohmann::json;

constexpr absl::string_view kName = "partition list";
constexpr size_t kMaxBytes = 1024 * 1024;
constexpr size_t kMaxUuid = 80;  // FM's buffer
constexpr std::int64_t kMinInt = std::numeric_limits<int>::min();
constexpr std::int64_t kMaxInt = std::numeric_limits<int>::max();
constexpr std::int64_t kMaxUnsigned = std::numeric_limits<unsigned>::max();

json ToJson(const FabricGpu& gpu) {
  json value = {{"physicalId", gpu.physical_id},
                {"nvlinksAvailable", gpu.nvlinks_available},
                {"nvlinksMax", gpu.nvlinks_max},
                {"lineRateMBps", gpu.line_rate_mbps}};
  if (!gpu.uuid.empty()) value["uuid"] = gpu.uuid;
  if (gpu.address) value["address"] = gpu.address->ToString();
  return value;
}

Result<FabricGpu> ToGpu(const json& value, std::string path) {
  ASSIGN_OR_RETURN(const JsonObject object, JsonObject::Make(value, kName, std::move(path),
                                                             {"physicalId", "nvlinksAvailable",
                                                              "nvlinksMax", "lineRateMBps"},
                                                             {"uuid", "address"}));
  FabricGpu gpu;
  const auto read = [&object](absl::string_view key, unsigned& to) -> Status {
    ASSIGN_OR_RETURN(const std::int64_t number, object.Integer(key, 0, kMaxUnsigned));
    to = static_cast<unsigned>(number);
    return OkStatus();
  };
  RETURN_IF_ERROR(read("physicalId", gpu.physical_id));
  RETURN_IF_ERROR(read("nvlinksAvailable", gpu.nvlinks_available));
  RETURN_IF_ERROR(read("nvlinksMax", gpu.nvlinks_max));
  RETURN_IF_ERROR(read("lineRateMBps", gpu.line_rate_mbps));
  if (object.Has("uuid")) {
    ASSIGN_OR_RETURN(gpu.uuid, object.String("uuid", kMaxUuid));
  }
  if (object.Has("address")) {
    ASSIGN_OR_RETURN(const std::string text, object.String("address", 32));
    const auto address = PciAddress::Parse(text);
    if (!address.ok())
      return object.Bad("address", absl::StrCat(Quoted(text), " is no PCI address"));
    gpu.address = *address;
  }
  return gpu;
}

Result<FabricPartition> ToPartition(const json& value, const std::string& path) {
  ASSIGN_OR_RETURN(const JsonObject object,
                   JsonObject::Make(value, kName, path, {"id", "active", "gpus"}, {}));
  FabricPartition partition;
  ASSIGN_OR_RETURN(const std::int64_t id, object.Integer("id", kMinInt, kMaxInt));
  partition.id = static_cast<int>(id);
  ASSIGN_OR_RETURN(partition.active, object.Bool("active"));
  ASSIGN_OR_RETURN(const json* gpus, object.Array("gpus"));
  for (const json& element : *gpus) {
    const std::string place = absl::StrCat(object.PathOf("gpus"), "[", partition.gpus.size(), "]");
    ASSIGN_OR_RETURN(FabricGpu gpu, ToGpu(element, place));
    partition.gpus.push_back(std::move(gpu));
  }
  return partition;
}

}  // namespace

std::string FabricListToJson(const FabricList& list) {
  json partitions = json::array();
  for (const FabricPartition& partition : list.partitions) {
    json gpus = json::array();
    for (const FabricGpu& gpu : partition.gpus) gpus.push_back(ToJson(gpu));
    partitions.push_back(
        {{"id", partition.id}, {"active", partition.active}, {"gpus", std::move(gpus)}});
  }
  const json value = {{"maxPartitions", list.max_partitions},
                      {"partitions", std::move(partitions)}};
  // A uuid is FM's bytes: what is no UTF-8 in it becomes U+FFFD instead of an exception.
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<FabricList> FabricListFromJson(absl::string_view text) {
  ASSIGN_OR_RETURN(const json value, ParseStrictJson(text, kName, kMaxBytes));
  ASSIGN_OR_RETURN(const JsonObject object,
                   JsonObject::Make(value, kName, "", {"maxPartitions", "partitions"}, {}));
  FabricList list;
  ASSIGN_OR_RETURN(const std::int64_t max, object.Integer("maxPartitions", kMinInt, kMaxInt));
  list.max_partitions = static_cast<int>(max);
  ASSIGN_OR_RETURN(const json* partitions, object.Array("partitions"));
  for (const json& element : *partitions) {
    ASSIGN_OR_RETURN(
        FabricPartition partition,
        ToPartition(element, absl::StrCat("partitions[", list.partitions.size(), "]")));
    list.partitions.push_back(std::move(partition));
  }
  RETURN_IF_ERROR(list.Validate());
  return list;
}

}  // namespace switchyard::fabric
