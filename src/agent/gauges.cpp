// SPDX-License-Identifier: Apache-2.0
#include "agent/gauges.h"

#include <map>
#include <string>

#include "absl/time/time.h"

namespace switchyard::agent {
namespace {

void AddFabric(const tenancy::FabricView& fabric, std::vector<Gauge>& gauges) {
  gauges.push_back({"switchyard_fabric_up",
                    "1 if Fabric Manager answered the last probe.",
                    {{{}, fabric.up ? 1.0 : 0.0}}});
  if (fabric.known) {
    gauges.push_back({"switchyard_fabric_list_read_timestamp_seconds",
                      "When the partition list in use was read.",
                      {{{}, absl::ToDoubleSeconds(fabric.read_at - absl::UnixEpoch())}}});
  }
  double active = 0;
  double inactive = 0;
  double incomplete = 0;
  for (const fabric::Partition& partition : fabric.table.partitions) {
    ++(!partition.complete ? incomplete : partition.active ? active : inactive);
  }
  gauges.push_back({"switchyard_fabric_partitions",
                    "Partitions by state; incomplete ones have a GPU without a module id.",
                    {{{{"state", "active"}}, active},
                     {{{"state", "inactive"}}, inactive},
                     {{{"state", "incomplete"}}, incomplete}}});
  gauges.push_back({"switchyard_modules_busy",
                    "GPUs that somebody holds, by kubelet's word and our own grants.",
                    {{{}, static_cast<double>(fabric.busy.size())}}});
  std::map<std::string, double> by_source;
  for (const auto& [address, entry] : fabric.map.entries()) {
    for (const fabric::MapSource source : entry.sources) {
      ++by_source[std::string(fabric::MapSourceName(source))];
    }
  }
  Gauge entries{"switchyard_module_map_entries", "Module-map entries, by who names them.", {}};
  for (const auto& [source, count] : by_source)
    entries.samples.push_back({{{"source", source}}, count});
  gauges.push_back(std::move(entries));
  gauges.push_back({"switchyard_module_map_errors",
                    "Contradictions and unreadable files in the module map.",
                    {{{}, static_cast<double>(fabric.map_errors.size())}}});
}

void AddResources(const std::vector<kube::DevicePlugins::ResourceStatus>& resources,
                  std::vector<Gauge>& gauges) {
  Gauge registered{"switchyard_registered",
                   "1 if the resource is registered and kubelet reads its device list.",
                   {}};
  Gauge devices{"switchyard_devices", "Devices offered to kubelet, by health.", {}};
  for (const auto& resource : resources) {
    registered.samples.push_back(
        {{{"resource", resource.resource}}, resource.streaming ? 1.0 : 0.0});
    devices.samples.push_back({{{"resource", resource.resource}, {"health", "healthy"}},
                               static_cast<double>(resource.healthy)});
    devices.samples.push_back({{{"resource", resource.resource}, {"health", "unhealthy"}},
                               static_cast<double>(resource.devices - resource.healthy)});
  }
  gauges.push_back(std::move(registered));
  gauges.push_back(std::move(devices));
}

}  // namespace

std::vector<Gauge> MakeGauges(tenancy::FabricMode mode, const tenancy::FabricView& fabric,
                              const std::vector<kube::DevicePlugins::ResourceStatus>& resources,
                              const pci::Inventory* inventory) {
  std::vector<Gauge> gauges;
  gauges.push_back({"switchyard_build_info",
                    "Always 1; the labels are what is running.",
                    {{{{"version", SWITCHYARD_VERSION},
                       {"fabric_mode", std::string(tenancy::FabricModeName(mode))}},
                      1.0}}});
  AddResources(resources, gauges);
  if (inventory != nullptr) {
    gauges.push_back({"switchyard_unreadable_devices",
                      "PCI devices that were left out because sysfs makes no sense there.",
                      {{{}, static_cast<double>(inventory->problems.size())}}});
  }
  if (mode != tenancy::FabricMode::kOff) AddFabric(fabric, gauges);
  return gauges;
}

}  // namespace switchyard::agent
