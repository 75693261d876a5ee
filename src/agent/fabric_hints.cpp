// SPDX-License-Identifier: Apache-2.0
#include "agent/fabric_hints.h"

#include <fcntl.h>

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/unique_fd.h"

namespace switchyard::agent {
namespace {

constexpr absl::string_view kMellanox = "0x15b3";  // vendor of the boards' bridge functions
constexpr absl::string_view kManagesSwitches = "SW_MNG";
// Strings of the identifying kind stand at the beginning; the whole can be 32 KiB, at milliseconds
// a word.
constexpr size_t kMaxVpd = 4096;

std::string ReadVpd(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, kMaxVpd> buffer;
  const ssize_t got = fd.valid() ? ::read(fd.get(), buffer.data(), buffer.size()) : -1;
  return got < 0 ? "" : std::string(buffer.data(), static_cast<size_t>(got));
}

bool ManagesSwitches(const std::string& folder) {
  const Result<std::string> vendor = ReadFile(absl::StrCat(folder, "/vendor"), 64);
  if (!vendor.ok() || absl::StripAsciiWhitespace(*vendor) != kMellanox) return false;
  return absl::StrContains(ReadVpd(absl::StrCat(folder, "/vpd")), kManagesSwitches);
}

}  // namespace

std::vector<std::string> FabricHints(const HostRoot& root, const pci::Inventory& inventory) {
  std::vector<std::string> hints;
  const auto switches =
      std::count_if(inventory.devices.begin(), inventory.devices.end(),
                    [](const pci::Device& device) { return device.self.IsNvSwitch(); });
  if (switches > 0) {
    hints.push_back(absl::StrCat(switches, switches == 1 ? " NVSwitch" : " NVSwitches"));
  }
  const std::string devices = root.Path("sys/bus/pci/devices");
  const Result<std::vector<std::string>> names = ListFolder(devices);
  if (!names.ok()) return hints;
  for (const std::string& name : *names) {
    if (!ManagesSwitches(absl::StrCat(devices, "/", name))) continue;
    hints.push_back(absl::StrCat(name, " is a switch management function (SW_MNG)"));
  }
  return hints;
}

}  // namespace switchyard::agent
