// SPDX-License-Identifier: Apache-2.0
#include "sim/board/derive.h"

#include <algorithm>
#include <array>
#include <random>
#include <span>

#include "absl/strings/str_format.h"

namespace switchyard::sim {
namespace {

// Ascending, and none of them a bus of kSwitchBuses.
constexpr std::array<std::uint8_t, 12> kLowBuses = {0x0f, 0x10, 0x19, 0x1b, 0x2a, 0x3b,
                                                    0x41, 0x43, 0x44, 0x4c, 0x52, 0x5d};
constexpr std::array<std::uint8_t, 12> kHighBuses = {0x86, 0x87, 0x90, 0x9b, 0xab, 0xb8,
                                                     0xbb, 0xcb, 0xd2, 0xdb, 0xe0, 0xe4};
constexpr std::array<std::uint8_t, 12> kSwitchBuses = {0x05, 0x06, 0x07, 0x08, 0x09, 0x0a,
                                                       0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9};

struct Model {
  absl::string_view board;  // of this name, or of any name with these return codes if empty
  absl::string_view return_codes;
  std::uint16_t gpu;
  std::uint16_t nvswitch;
  int nvswitches_of_8;  // for up to 8 GPUs; twice as many for 16
};
constexpr std::array<Model, 4> kModels = {{
    {"hgx-2", "ampere", 0x1db8, 0x1ac2, 6},
    {"", "ampere", 0x20b2, 0x1af1, 6},
    {"", "hopper", 0x2330, 0x22a3, 4},
    {"", "blackwell", 0x2901, 0, 0},
}};

const Model& ModelOf(const Board& board) {
  for (const Model& model : kModels) {
    if (model.return_codes == board.return_codes &&
        (model.board.empty() || model.board == board.name)) {
      return model;
    }
  }
  return kModels.back();  // not reached: the parser admits these three return codes only
}

// std::shuffle differs between standard libraries; this doesn't.
template <typename T>
void Shuffle(std::vector<T>& items, std::mt19937_64& random) {
  for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[random() % i]);
}

std::vector<std::uint8_t> Draw(std::span<const std::uint8_t> buses, size_t count,
                               std::mt19937_64& random) {
  std::vector<std::uint8_t> drawn(buses.begin(), buses.end());
  Shuffle(drawn, random);
  drawn.resize(count);
  // A board whose addresses ascend (or descend) with the modules would hide the very mistake that
  // the simulator is to show.
  while (count > 2 && (std::is_sorted(drawn.begin(), drawn.end()) ||
                       std::is_sorted(drawn.rbegin(), drawn.rend()))) {
    Shuffle(drawn, random);
  }
  return drawn;
}

// A cyclic permutation (Sattolo): no id is its own, so whoever takes one for the other is found
// out.
std::vector<int> OtherIds(std::vector<int> ids, std::mt19937_64& random) {
  for (size_t i = ids.size(); i > 1; --i) std::swap(ids[i - 1], ids[random() % (i - 1)]);
  return ids;
}

std::string Uuid(std::mt19937_64& random) {
  const std::uint64_t a = random();
  const std::uint64_t b = random();
  return absl::StrFormat("GPU-%08x-%04x-%04x-%04x-%012x", a >> 32, (a >> 16) & 0xffff, a & 0xffff,
                         b >> 48, b & 0xffffffffffff);
}

}  // namespace

void DeriveDevices(Board& board, const std::set<int>& modules, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const size_t half = (modules.size() + 1) / 2;
  // Which half of the modules sits on which node is the board maker's choice too.
  const bool swapped = random() % 2 == 1;
  const auto low = Draw(kLowBuses, swapped ? modules.size() - half : half, random);
  const auto high = Draw(kHighBuses, swapped ? half : modules.size() - half, random);
  size_t position = 0;
  for (int module : modules) {
    const bool is_high = (position < half) == swapped;
    const size_t index = position < half ? position : position - half;
    BoardDevice device;
    device.module = module;
    device.address.bus = is_high ? high[index] : low[index];
    device.numa_node = is_high ? 1 : 0;
    board.devices.push_back(device);
    ++position;
  }
}

void CompleteDevices(Board& board, std::uint64_t seed) {
  std::mt19937_64 random(seed + 1);
  std::vector<int> ids;
  ids.reserve(board.devices.size());
  for (const BoardDevice& device : board.devices) ids.push_back(device.module);
  if (board.identity_by_pci) ids = OtherIds(ids, random);
  for (size_t i = 0; i < board.devices.size(); ++i) {
    BoardDevice& device = board.devices[i];
    if (device.physical_id == 0) device.physical_id = ids[i];
    if (device.device_id == 0) device.device_id = ModelOf(board).gpu;
    if (board.identity_by_pci) device.uuid = Uuid(random);
  }
}

void DeriveNvSwitches(Board& board) {
  const Model& model = ModelOf(board);
  board.nvswitch_device_id = model.nvswitch;
  const size_t count = model.nvswitches_of_8 * (board.devices.size() > 8 ? 2 : 1);
  std::set<std::uint8_t> taken;
  for (const BoardDevice& device : board.devices) {
    if (device.address.domain == 0) taken.insert(device.address.bus);
  }
  for (std::uint8_t bus : kSwitchBuses) {
    if (board.nvswitches.size() < count && !taken.contains(bus)) {
      board.nvswitches.push_back({.bus = bus});
    }
  }
}

}  // namespace switchyard::sim
