// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "fabric/module_map.h"
#include "fabric/strict_json.h"

namespace switchyard::fabric {
namespace {

using nlohmann::json;

constexpr size_t kMaxBytes = 64 * 1024;
constexpr size_t kMaxShown = 64;

// "1".."16", nothing before, between or after: "01", " 1" and "+1" are somebody's mistake.
std::optional<ModuleId> FromText(absl::string_view text) {
  if (text.empty() || text.size() > 2 || text.front() == '0') return std::nullopt;
  ModuleId module = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    module = module * 10 + (c - '0');
  }
  return module <= kMaxModule ? std::optional(module) : std::nullopt;
}

std::optional<ModuleId> FromValue(const json& value) {
  if (value.is_string()) return FromText(value.get_ref<const std::string&>());
  if (!value.is_number_unsigned()) return std::nullopt;
  const auto number = value.get<std::uint64_t>();
  if (number < std::uint64_t{kMinModule} || number > std::uint64_t{kMaxModule}) return std::nullopt;
  return static_cast<ModuleId>(number);
}

std::string Shown(const json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  if (value.is_string()) return Quoted(value.get_ref<const std::string&>());
  return value.dump().substr(0, kMaxShown);
}

}  // namespace

Result<ModuleEntries> ParseModuleMap(absl::string_view text, absl::string_view file_name) {
  ASSIGN_OR_RETURN(const json map, ParseStrictJson(text, file_name, kMaxBytes));
  ModuleEntries entries;
  std::map<ModuleId, std::string> key_of;
  for (const auto& [key, value] : map.items()) {
    const auto bad = [&](absl::string_view message) {
      return BadJson(file_name, Quoted(key), message);
    };
    const auto address = PciAddress::Parse(key);
    if (!address.ok())
      return bad("a key must be a PCI address, DOMAIN:BUS:DEVICE.FUNCTION, such as 0000:19:00.0");
    const auto module = FromValue(value);
    if (!module) {
      return bad(absl::StrCat("value ", Shown(value), " must be a module id: a whole number from ",
                              kMinModule, " to ", kMaxModule, ", as 3 or as \"3\""));
    }
    if (!entries.emplace(*address, *module).second) {
      return bad(absl::StrCat("the address ", address->ToString(),
                              " stands here a second time in another spelling; keep one"));
    }
    if (const auto [it, inserted] = key_of.emplace(*module, key); !inserted) {
      return bad(absl::StrCat("module ", *module, " is already given to ", Quoted(it->second),
                              "; each module is one GPU"));
    }
  }
  return entries;
}

std::string FormatModuleMap(const ModuleEntries& entries) {
  std::string text = "{";
  absl::string_view separator = "\n";
  for (const auto& [address, module] : entries) {
    absl::StrAppend(&text, separator, "  \"", address.ToString(), "\": \"", module, "\"");
    separator = ",\n";
  }
  absl::StrAppend(&text, "\n}\n");
  return text;
}

}  // namespace switchyard::fabric
