// SPDX-License-Identifier: Apache-2.0
#include "agent/status_json.h"

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

Json PartitionsOf(const fabric::PartitionTable& table) {
  Json partitions = Json::array();
  for (const fabric::Partition& partition : table.partitions) {
    partitions.push_back({{"id", partition.id},
                          {"active", partition.active},
                          {"modules", partition.modules.ToVector()},
                          {"complete", partition.complete}});
  }
  return partitions;
}

Json EntriesOf(const fabric::ModuleMap& map) {
  Json entries = Json::array();
  for (const auto& [address, entry] : map.entries()) {
    Json sources = Json::array();
    for (const fabric::MapSource source : entry.sources) {
      sources.push_back(std::string(fabric::MapSourceName(source)));
    }
    entries.push_back({{"address", address.ToString()},
                       {"module", entry.module},
                       {"sources", std::move(sources)},
                       {"origin", entry.origin}});
  }
  return entries;
}

}  // namespace

std::string FabricJson(tenancy::FabricMode mode, const tenancy::FabricView& view,
                       const pci::Inventory* inventory) {
  Json usable = Json::array();
  Json numa_nodes = Json::object();
  for (const auto& [address, entry] : view.map.entries()) {
    const pci::Device* device = inventory == nullptr ? nullptr : inventory->Find(address);
    if (device == nullptr) continue;
    if (device->ready()) usable.push_back(entry.module);
    if (device->self.numa_node) numa_nodes[std::to_string(entry.module)] = *device->self.numa_node;
  }
  const Json document = {
      {"mode", std::string(tenancy::FabricModeName(mode))},
      {"known", view.known},
      {"up", view.up},
      {"error", view.error},
      {"readAt", view.known
                     ? Json(absl::FormatTime(absl::RFC3339_sec, view.read_at, absl::UTCTimeZone()))
                     : Json(nullptr)},
      {"partitions", PartitionsOf(view.table)},
      {"map", EntriesOf(view.map)},
      {"mapErrors", view.map_errors},
      {"busy", view.busy.ToVector()},
      {"usable", std::move(usable)},
      {"numaNodes", std::move(numa_nodes)}};
  return document.dump() + "\n";
}

std::string ResourcesJson(const kube::Offer& offer,
                          const std::vector<kube::DevicePlugins::ResourceStatus>& status) {
  Json resources = Json::array();
  for (const kube::Resource& resource : offer.resources) {
    Json devices = Json::array();
    for (const kube::OfferedDevice& device : resource.devices) {
      devices.push_back({{"id", device.id},
                         {"address", device.address.ToString()},
                         {"healthy", device.healthy},
                         {"problem", device.healthy ? Json(nullptr) : Json(device.why_unhealthy)},
                         {"numaNode", OrNull(device.numa_node)}});
    }
    Json entry = {{"name", resource.name}};
    for (const auto& registered : status) {
      if (registered.resource != resource.name) continue;
      entry["streaming"] = registered.streaming;
      entry["socket"] = registered.socket;
      entry["problem"] = registered.problem.empty() ? Json(nullptr) : Json(registered.problem);
    }
    entry["devices"] = std::move(devices);
    resources.push_back(std::move(entry));
  }
  return Json{{"resources", std::move(resources)}}.dump() + "\n";
}

}  // namespace switchyard::agent
