// SPDX-License-Identifier: Apache-2.0
#include "sim/node/host_files.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace switchyard::sim {

using Json = nlohmann::ordered_json;

std::string ModuleMapText(const Board& board) {
  Json map = Json::object();
  for (const BoardDevice& device : board.devices) {
    const PciAddress& a = device.address;
    map[absl::StrFormat("%08X:%02X:%02X.%X", a.domain, a.bus, a.device, a.function)] =
        absl::StrCat(device.module);
  }
  return map.dump(2) + "\n";
}

std::string NvmlText(const Board& board, const std::string& host_root) {
  Json gpus = Json::array();
  for (const BoardDevice& device : board.devices) {
    gpus.push_back({{"address", device.address.ToString()}, {"module", device.module}});
  }
  return Json({{"root", host_root}, {"gpus", gpus}}).dump(2) + "\n";
}

}  // namespace switchyard::sim
