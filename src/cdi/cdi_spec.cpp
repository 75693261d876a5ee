// SPDX-License-Identifier: Apache-2.0
// Grammar and file names: CDI's SPEC.md 1.1.0, "CDI JSON Specification" and "Kind".
#include "cdi/cdi_spec.h"

#include <unistd.h>

#include <cerrno>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"

namespace switchyard::cdi {
namespace {

constexpr char kVersion[] = "0.5.0";
constexpr size_t kMaxVendor = 253;     // a DNS subdomain
constexpr size_t kMaxClass = 63;       // a DNS label
constexpr size_t kMaxSpec = 1u << 20;  // bytes; a file of ours is a few kB

bool IsLetter(char c) { return absl::ascii_isalpha(static_cast<unsigned char>(c)); }
bool IsAlphanumeric(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)); }

// `extra`: what may stand in the middle besides letters and digits.
bool Matches(absl::string_view text, bool (*first)(char), absl::string_view extra) {
  if (text.empty() || !first(text.front()) || !IsAlphanumeric(text.back())) return false;
  for (const char c : text) {
    if (!IsAlphanumeric(c) && extra.find(c) == absl::string_view::npos) return false;
  }
  return true;
}

Status ValidateKind(absl::string_view kind) {
  const size_t slash = kind.find('/');
  const absl::string_view vendor = kind.substr(0, slash);
  const absl::string_view klass =
      slash == absl::string_view::npos ? absl::string_view() : kind.substr(slash + 1);
  // A "." in the class would need version 0.6.0.
  if (vendor.size() <= kMaxVendor && klass.size() <= kMaxClass &&
      Matches(vendor, IsLetter, "_.-") && Matches(klass, IsLetter, "_-"))
    return OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("CDI kind \"", kind,
                   "\": vendor and class must begin with a letter, end with a letter or digit and "
                   "hold only letters, digits, '_' and '-' (the vendor also '.'): give the "
                   "resource another name"));
}

Status ValidateDevice(const CdiDevice& device, std::set<std::string>& names) {
  const auto error = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("CDI device \"", device.name, "\": ", what));
  };
  if (!Matches(device.name, IsAlphanumeric, "_.:-"))
    return error("a name begins and ends with a letter or digit, and holds '_', '.', ':', '-'");
  if (!names.insert(device.name).second) return error("is there twice");
  if (device.nodes.empty()) return error("has no device nodes: runtimes refuse empty edits");
  std::set<std::string> nodes;
  for (const std::string& node : device.nodes) {
    if (node.empty() || node.front() != '/')
      return error(absl::StrCat("node \"", node, "\" is no absolute path"));
    if (!nodes.insert(node).second) return error(absl::StrCat("node ", node, " is there twice"));
  }
  return OkStatus();
}

// A YAML double-quoted scalar, which is also JSON's string.
std::string Quote(absl::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted.push_back('\\');
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) {
      absl::StrAppend(&quoted, "\\x", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
    } else {
      quoted.push_back(c);
    }
  }
  quoted.push_back('"');
  return quoted;
}

Status RemoveFile(const std::string& path) {
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return OkStatus();
  return ErrnoError(errno, path);
}

}  // namespace

Status Validate(const CdiSpec& spec) {
  RETURN_IF_ERROR(ValidateKind(spec.kind));
  std::set<std::string> names;
  for (const CdiDevice& device : spec.devices) RETURN_IF_ERROR(ValidateDevice(device, names));
  return OkStatus();
}

std::string ToYaml(const CdiSpec& spec) {
  std::string yaml =
      absl::StrCat("cdiVersion: ", Quote(kVersion), "\nkind: ", Quote(spec.kind), "\ndevices:\n");
  for (const CdiDevice& device : spec.devices) {
    absl::StrAppend(&yaml, "  - name: ", Quote(device.name),
                    "\n    containerEdits:\n      deviceNodes:\n");
    for (const std::string& node : device.nodes) {
      absl::StrAppend(&yaml, "        - path: ", Quote(node), "\n");
    }
  }
  return yaml;
}

Status WriteSpec(const std::string& folder, const CdiSpec& spec) {
  RETURN_IF_ERROR(Validate(spec));
  std::string stem = spec.kind;
  stem[stem.find('/')] = '-';
  const std::string file = absl::StrCat(folder, "/", stem, ".yaml");
  RETURN_IF_ERROR(RemoveFile(absl::StrCat(folder, "/", stem, ".json")));
  if (spec.devices.empty()) return RemoveFile(file);
  const std::string yaml = ToYaml(spec);
  const Result<std::string> present = ReadFile(file, kMaxSpec);
  if (present.ok() && *present == yaml) return OkStatus();
  RETURN_IF_ERROR(MakeFolders(folder));
  return WriteFileAtomically(file, yaml);
}

}  // namespace switchyard::cdi
