// SPDX-License-Identifier: Apache-2.0
#include "pci/pci_ids.h"

#include <map>
#include <utility>

#include "absl/base/call_once.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/files.h"

namespace switchyard::pci {
namespace {

constexpr size_t kMaxFile = size_t{16} << 20;
constexpr size_t kMaxName = 256;

// Data-centre GPUs and NVSwitches that the pci.ids of Debian 12 (2023-04-10) lacks, or knows by a
// name that pci.ids has since changed. Names as in pci.ids of 2026-05-24.
constexpr std::pair<std::uint16_t, const char*> kNewer[] = {
    {0x22a3, "GH100 [H100 NVSwitch]"},
    {0x230c, "GH100 [H20 NVL16]"},
    {0x230e, "GH100 [H20 NVL16]"},
    {0x2321, "GH100 [H100L 94GB]"},
    {0x2328, "GH100 [H20B]"},
    {0x2329, "GH100 [H20]"},
    {0x232c, "GH100 [H20 HBM3e]"},
    {0x2330, "GH100 [H100 SXM5 80GB]"},
    {0x2335, "GH100 [H200 SXM 141GB]"},
    {0x2337, "GH100 [H100 SXM5 64GB]"},
    {0x2338, "GH100 [H100 SXM5 96GB]"},
    {0x2339, "GH100 [H100 SXM5 94GB]"},
    {0x233a, "GH100 [H800L 94GB]"},
    {0x233b, "GH100 [H200 NVL]"},
    {0x233d, "GH100 [H100 96GB]"},
    {0x2342, "GH100 [GH200 120GB / 480GB]"},
    {0x2348, "GH100 [GH200 144G HBM3e]"},
    {0x26b7, "AD102GL [L20]"},
    {0x26b9, "AD102GL [L40S]"},
    {0x26ba, "AD102GL [L20]"},
    {0x27b6, "AD104GL [L2]"},
    {0x2901, "GB100 [B200]"},
    {0x2909, "GB100 [HGX B200 168GB]"},
    {0x2920, "GB100 [TS4 / B100]"},
    {0x2941, "GB100 [HGX GB200]"},
    {0x29bc, "GB102 [B100]"},
    {0x2bb5, "GB202GL [RTX PRO 6000 Blackwell Server Edition]"},
    {0x3182, "GB110 [B300 SXM6 AC]"},
    {0x31c2, "GB110 [GB300]"},
    {0x31c3, "GB110 [GB300]"},
};

// The lines of vendor 10de's devices: from the one after its own to the next vendor's.
absl::string_view NvidiaBlock(absl::string_view file) {
  constexpr absl::string_view kVendorLine = "\n10de  ";
  const size_t vendor = absl::StartsWith(file, kVendorLine.substr(1)) ? 0 : file.find(kVendorLine);
  if (vendor == absl::string_view::npos) return {};
  const size_t begin = file.find('\n', vendor + 1);
  if (begin == absl::string_view::npos) return {};
  size_t end = begin;  // at a line's '\n'; go on while the next line is a device, note or empty
  while (end + 1 < file.size() &&
         absl::string_view("\t#\n").find(file[end + 1]) != absl::string_view::npos) {
    end = file.find('\n', end + 1);
    if (end == absl::string_view::npos) return file.substr(begin);
  }
  return file.substr(begin, end - begin);
}

// "<tab>2330  GH100 [H100 SXM5 80GB]"; lines of subsystems start with two tabs.
std::optional<std::pair<std::uint16_t, std::string>> ParseDevice(absl::string_view line) {
  if (line.size() < 8 || line[0] != '\t' || line[1] == '\t' || line.substr(5, 2) != "  ")
    return std::nullopt;
  std::uint32_t device = 0;
  if (!absl::SimpleHexAtoi(line.substr(1, 4), &device)) return std::nullopt;
  const absl::string_view name = absl::StripAsciiWhitespace(line.substr(7));
  if (name.empty() || name.size() > kMaxName) return std::nullopt;
  return std::pair(static_cast<std::uint16_t>(device), std::string(name));
}

}  // namespace

class PciIds::File {
 public:
  explicit File(std::string path) : path_(std::move(path)) {}

  const std::map<std::uint16_t, std::string>& Names() {
    absl::call_once(read_, [this] { Read(); });
    return names_;
  }

 private:
  void Read() {
    const Result<std::string> file = ReadFile(path_, kMaxFile);
    if (!file.ok()) return;
    for (const absl::string_view line : absl::StrSplit(NvidiaBlock(*file), '\n')) {
      if (auto device = ParseDevice(line)) names_.insert(*std::move(device));
    }
  }

  const std::string path_;
  absl::once_flag read_;
  std::map<std::uint16_t, std::string> names_;
};

PciIds::PciIds(std::string path) : file_(std::make_shared<File>(std::move(path))) {}

std::optional<std::string> PciIds::Name(std::uint16_t device) const {
  for (const auto& [newer, name] : kNewer) {
    if (newer == device) return name;
  }
  const std::map<std::uint16_t, std::string>& names = file_->Names();
  const auto found = names.find(device);
  if (found == names.end()) return std::nullopt;
  return found->second;
}

}  // namespace switchyard::pci
