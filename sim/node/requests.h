// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a running simulator can be asked: {"command": "device.vanish", ...}. One table of handlers
// over a SimNode; switchyard-sim's subcommands and scripts speak to it by control_socket.h. An
// argument that is missing or of the wrong kind is kInvalidArgument and names it. Any thread.

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/status.h"
#include "sim/node/sim_node.h"

namespace switchyard::sim {

using RequestHandler = std::function<Result<nlohmann::json>(SimNode&, const nlohmann::json&)>;
using RequestTable = std::map<std::string, RequestHandler>;

[[nodiscard]] Result<nlohmann::json> HandleRequest(SimNode& node, const nlohmann::json& request);

// The table's parts, one a file.
void AddDeviceRequests(RequestTable& table);   // device.*, reboot, map.*, clock.advance
void AddFabricRequests(RequestTable& table);   // fm.*
void AddKubeletRequests(RequestTable& table);  // kubelet.*, pod.*
void AddStatusRequests(RequestTable& table);   // status

// Arguments.
[[nodiscard]] Result<std::string> TextArgument(const nlohmann::json& request, const char* key);
[[nodiscard]] Result<std::int64_t> IntArgument(const nlohmann::json& request, const char* key,
                                               std::int64_t least, std::int64_t most);
// "0000:0f:00.0" or a module id, by the board.
[[nodiscard]] Result<PciAddress> DeviceArgument(const SimNode& node, const nlohmann::json& request,
                                                const char* key);

}  // namespace switchyard::sim
