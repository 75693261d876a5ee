// SPDX-License-Identifier: Apache-2.0
#pragma once

// What `status` and `pod add` answered, as a person reads it. Pure; any thread.

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace switchyard::sim {

// The whole status: the board, Fabric Manager, kubelet. Lines end in '\n'.
[[nodiscard]] std::string StatusPicture(const nlohmann::json& status);
[[nodiscard]] std::string BoardPicture(const nlohmann::json& status);
[[nodiscard]] std::string FabricPicture(const nlohmann::json& fm);
[[nodiscard]] std::string TablePicture(const nlohmann::json& fm);  // every partition, a line each
[[nodiscard]] std::string PodPicture(const nlohmann::json& pod);

}  // namespace switchyard::sim
