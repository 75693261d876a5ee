// SPDX-License-Identifier: Apache-2.0
#include "agent/status_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace switchyard::agent {
namespace {

using nlohmann::json;

TEST(FabricJson, ListsPartitionsMapAndUsableModules) {
  tenancy::FabricView view;
  view.known = true;
  view.read_at = absl::FromUnixSeconds(0);
  view.error = "down";
  view.table.partitions = {{3, true, {1, 3}, true}};
  view.busy = {3};
  view.map_errors = {"bad file"};
  fabric::ModuleMap::Input input;
  const PciAddress ready{0, 0x19, 0, 0};
  const PciAddress broken{0, 0x3b, 0, 0};
  input.files = {{"/run/map.json", {{ready, 1}, {broken, 3}}}};
  view.map = fabric::ModuleMap::Join(input);
  pci::Inventory inventory;
  inventory.devices.resize(2);
  inventory.devices[0].self.address = ready;
  inventory.devices[0].self.numa_node = 1;
  inventory.devices[1].self.address = broken;
  inventory.devices[1].problem = "on nvidia";

  const json document = json::parse(FabricJson(tenancy::FabricMode::kAdvise, view, &inventory));
  EXPECT_EQ(document, json::parse(R"({
    "mode": "advise", "known": true, "up": false, "error": "down", "readAt": "1970-01-01T00:00:00+00:00",
    "partitions": [{"id": 3, "active": true, "modules": [1, 3], "complete": true}],
    "map": [{"address": "0000:19:00.0", "module": 1, "sources": ["file"], "origin": "/run/map.json"},
            {"address": "0000:3b:00.0", "module": 3, "sources": ["file"], "origin": "/run/map.json"}],
    "mapErrors": ["bad file"], "busy": [3], "usable": [1], "numaNodes": {"1": 1}})"));
}

TEST(FabricJson, WithoutAListThereIsNoTime) {
  const json document = json::parse(FabricJson(tenancy::FabricMode::kOff, {}, nullptr));
  EXPECT_TRUE(document["readAt"].is_null());
  EXPECT_EQ(document["partitions"], json::array());
}

TEST(ResourcesJson, JoinsOfferAndRegistration) {
  kube::Offer offer;
  offer.resources.resize(1);
  offer.resources[0].name = "nvidia.com/pgpu";
  kube::OfferedDevice device;
  device.id = "7";
  device.address = {0, 0x19, 0, 0};
  device.why_unhealthy = "gone";
  offer.resources[0].devices = {device};
  kube::DevicePlugins::ResourceStatus status;
  status.resource = "nvidia.com/pgpu";
  status.socket = "switchyard-pgpu-1.sock";
  status.problem = "kubelet is absent";
  const json document = json::parse(ResourcesJson(offer, {status}));
  EXPECT_EQ(document, json::parse(R"({"resources": [{"name": "nvidia.com/pgpu", "streaming": false,
    "socket": "switchyard-pgpu-1.sock", "problem": "kubelet is absent",
    "devices": [{"id": "7", "address": "0000:19:00.0", "healthy": false, "problem": "gone",
                 "numaNode": null}]}]})"));
}

}  // namespace
}  // namespace switchyard::agent
