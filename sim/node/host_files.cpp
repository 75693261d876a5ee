// SPDX-License-Identifier: Apache-2.0
#include "sim/node/host_files.h"

#include <nlohmann/json.hpp>
#include <random>

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

std::string BootIdText(std::uint64_t seed, int boot) {
  std::seed_seq both{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                     static_cast<std::uint32_t>(boot)};
  std::mt19937_64 random(both);
  const std::uint64_t high = random();
  const std::uint64_t low = random();
  return absl::StrFormat("%08x-%04x-4%03x-8%03x-%012x\n", high >> 32, (high >> 16) & 0xffff,
                         high & 0xfff, low >> 52, low & 0xffff'ffff'ffff);
}

std::string NvmlText(const Board& board, const std::string& host_root) {
  Json gpus = Json::array();
  for (const BoardDevice& device : board.devices) {
    gpus.push_back({{"address", device.address.ToString()}, {"module", device.module}});
  }
  return Json({{"root", host_root}, {"gpus", gpus}}).dump(2) + "\n";
}

}  // namespace switchyard::sim
