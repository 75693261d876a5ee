// SPDX-License-Identifier: Apache-2.0
#include "pci/function.h"

#include <algorithm>
#include <array>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace switchyard::pci {
namespace {

// Vendors' vfio drivers by name, for kernels before 6.1, which have no folder vfio-dev. The kernel
// module's name and the driver's differ in the dash, and both are seen in the field.
constexpr std::array<absl::string_view, 3> kVfioDrivers = {"vfio-pci", "nvgrace_gpu_vfio_pci",
                                                           "nvgrace-gpu-vfio-pci"};

Status Malformed(absl::string_view file, absl::string_view value, absl::string_view rule) {
  return absl::FailedPreconditionError(absl::StrCat(
      file, " holds \"", absl::CHexEscape(value.substr(0, 64)), "\"; it must be ", rule));
}

bool IsDecimal(absl::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == absl::string_view::npos;
}

// "0x" and one to 16 digits, nothing else.
std::optional<std::uint64_t> ParseHex(absl::string_view text) {
  std::uint64_t value = 0;
  if (!absl::ConsumePrefix(&text, "0x") || text.empty() ||
      text.find_first_not_of("0123456789abcdefABCDEF") != absl::string_view::npos ||
      !absl::SimpleHexAtoi(text, &value))
    return std::nullopt;
  return value;
}

// An id as the kernel prints it: with exactly `digits` digits.
Result<std::uint32_t> ReadId(const Folder& function, const char* name, size_t digits) {
  ASSIGN_OR_RETURN(const std::string text, function.Read(name));
  const std::optional<std::uint64_t> value = ParseHex(text);
  if (!value.has_value() || text.size() != digits + 2)
    return Malformed(name, text, absl::StrCat("0x and ", digits, " hexadecimal digits"));
  return static_cast<std::uint32_t>(*value);
}

// Absent for -1: the firmware did not say, which is not node 0.
Result<std::optional<int>> ReadNumaNode(const Folder& function) {
  ASSIGN_OR_RETURN(const std::string text, function.Read("numa_node"));
  if (text == "-1") return std::nullopt;
  int node = 0;
  if (!IsDecimal(text) || !absl::SimpleAtoi(text, &node))
    return Malformed("numa_node", text, "a node number, or -1 if unknown");
  return node;
}

Result<std::optional<std::string>> ReadDriver(const Folder& function) {
  Result<std::string> driver = function.LinkName("driver");
  if (driver.ok()) return std::optional<std::string>(*std::move(driver));
  if (absl::IsNotFound(driver.status())) return std::nullopt;
  return driver.status();
}

// The folder vfio-dev is there while the bound driver is a vfio driver (kernel 6.1 and newer); it
// holds the one folder vfioN, and this the file "dev" if the kernel makes /dev/vfio/devices/vfioN.
Status ReadVfioDev(const Folder& folder, Function& function) {
  const Result<std::vector<std::string>> names = folder.List("vfio-dev");
  if (absl::IsNotFound(names.status())) return OkStatus();
  if (!names.ok()) return names.status();
  function.on_vfio = true;
  for (const std::string& name : *names) {
    if (!absl::StartsWith(name, "vfio") || !IsDecimal(name.substr(4)) || names->size() > 1)
      return Malformed("vfio-dev", name, "the only entry and named vfio and a number");
    if (folder.Has(absl::StrCat("vfio-dev/", name, "/dev"))) function.vfio_cdev = name;
  }
  return OkStatus();
}

Result<std::optional<int>> ParseGroup(const Result<std::string>& link) {
  if (absl::IsNotFound(link.status())) return std::nullopt;
  if (!link.ok()) return link.status();
  int group = 0;
  if (!IsDecimal(*link) || !absl::SimpleAtoi(*link, &group))
    return Malformed("iommu_group", *link, "a link to a group's number");
  return group;
}

// One line of "resource": start, end, flags, each 0x and hexadecimal digits.
std::optional<std::array<std::uint64_t, 3>> ParseResourceLine(absl::string_view line) {
  const std::vector<absl::string_view> fields = absl::StrSplit(line, ' ', absl::SkipEmpty());
  std::array<std::uint64_t, 3> values = {};
  if (fields.size() != values.size()) return std::nullopt;
  for (size_t i = 0; i < values.size(); ++i) {
    const std::optional<std::uint64_t> value = ParseHex(fields[i]);
    if (!value.has_value()) return std::nullopt;
    values[i] = *value;
  }
  return values;
}

}  // namespace

Result<std::uint16_t> ReadVendor(const Folder& function) {
  ASSIGN_OR_RETURN(const std::uint32_t vendor, ReadId(function, "vendor", 4));
  return static_cast<std::uint16_t>(vendor);
}

Result<std::optional<int>> ReadIommuGroup(const Folder& function) {
  return ParseGroup(function.LinkName("iommu_group"));
}

Result<std::optional<int>> ReadIommuGroup(const std::string& link) {
  Result<std::optional<int>> group = ParseGroup(Folder::LinkNameOfPath(link));
  if (!group.ok()) return Annotate(group.status(), link);
  return group;
}

Result<Function> ReadFunction(const Folder& folder, const PciAddress& address, Detail detail,
                              const Function* scanned) {
  Function function;
  function.address = address;
  ASSIGN_OR_RETURN(function.inode, folder.Inode());
  if (scanned != nullptr && scanned->address == address && scanned->inode == function.inode) {
    function.vendor = scanned->vendor;
    function.class_code = scanned->class_code;
  } else {
    ASSIGN_OR_RETURN(function.vendor, ReadVendor(folder));
    ASSIGN_OR_RETURN(function.class_code, ReadId(folder, "class", 6));
  }
  if (detail == Detail::kAll) {
    ASSIGN_OR_RETURN(const std::uint32_t device, ReadId(folder, "device", 4));
    function.device = static_cast<std::uint16_t>(device);
    if (function.IsGpu() || function.IsNvSwitch()) {
      ASSIGN_OR_RETURN(function.numa_node, ReadNumaNode(folder));
    }
  }
  ASSIGN_OR_RETURN(function.iommu_group, ReadIommuGroup(folder));
  ASSIGN_OR_RETURN(function.driver, ReadDriver(folder));
  if (function.driver.has_value()) {
    function.on_vfio =
        std::find(kVfioDrivers.begin(), kVfioDrivers.end(), *function.driver) != kVfioDrivers.end();
    if (detail != Detail::kLegacyHandover || !function.on_vfio) {
      RETURN_IF_ERROR(ReadVfioDev(folder, function));
    }
  }
  return function;
}

Result<std::vector<Bar>> ReadBars(const Folder& function) {
  const Result<std::string> text = function.Read("resource");
  if (absl::IsNotFound(text.status())) return std::vector<Bar>();
  if (!text.ok()) return text.status();
  // Flags of include/linux/ioport.h: memory, and 64 bits wide.
  constexpr std::uint64_t kMemory = 0x200;
  constexpr std::uint64_t k64Bit = 0x100000;
  std::vector<Bar> bars;
  int index = 0;
  for (const absl::string_view line : absl::StrSplit(*text, '\n', absl::SkipEmpty())) {
    const auto values = ParseResourceLine(line);
    if (!values.has_value())
      return Malformed("resource", line, "three hexadecimal numbers: start, end and flags");
    const auto [start, end, flags] = *values;
    if (end < start)
      return Malformed("resource", line, "a region whose end is not before its start");
    // Lines 0 to 5 are the BARs; ROM, SR-IOV regions and bridge windows follow.
    if (index < 6 && (flags & kMemory) != 0 && end != 0)
      bars.push_back({index, end - start + 1, (flags & k64Bit) != 0});
    ++index;
  }
  return bars;
}

}  // namespace switchyard::pci
