// SPDX-License-Identifier: Apache-2.0
#include "kube/resource_names.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace switchyard::kube {
namespace {

constexpr size_t kMaxNameLength = 63;  // a label value's, from Kubernetes' qualified names

Status Check(absl::string_view key, absl::string_view name) {
  if (IsResourceName(name)) return OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "resources.", key, ": \"", name,
      "\" is no resource name: use 1 to 63 letters, digits, '_', '.' or '-', beginning "
      "and ending with a letter or digit"));
}

}  // namespace

std::string SpellModel(absl::string_view pci_ids_name, Hyphens hyphens) {
  std::string spelt;
  bool in_space = false;
  for (const char c : pci_ids_name) {
    const char upper = absl::ascii_toupper(static_cast<unsigned char>(c));
    const bool space = absl::ascii_isspace(static_cast<unsigned char>(c));
    if (c == '/' || c == '.' || (space && !in_space)) {
      spelt.push_back('_');
    } else if (absl::ascii_isupper(static_cast<unsigned char>(upper)) ||
               absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '_' ||
               (c == '-' && hyphens == Hyphens::kKeep)) {
      spelt.push_back(upper);
    }
    in_space = space;
  }
  return spelt;
}

bool IsResourceName(absl::string_view name) {
  const auto alphanumeric = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c));
  };
  return !name.empty() && name.size() <= kMaxNameLength && alphanumeric(name.front()) &&
         alphanumeric(name.back()) && std::all_of(name.begin(), name.end(), [&](char c) {
           return alphanumeric(c) || c == '_' || c == '.' || c == '-';
         });
}

Result<ResourceNames> ResourceNames::Make(NamingOptions options, pci::PciIds ids, Hyphens hyphens) {
  for (const auto& [device, name] : options.names) {
    RETURN_IF_ERROR(Check(absl::StrFormat("names[\"0x%04x\"]", device), name));
  }
  const std::string gpu = options.gpu_alias.value_or("");
  const std::string nvswitch = options.nvswitch_alias.value_or("");
  if (!gpu.empty()) RETURN_IF_ERROR(Check("aliases.gpu", gpu));
  if (!nvswitch.empty()) RETURN_IF_ERROR(Check("aliases.nvswitch", nvswitch));
  if (!gpu.empty() && gpu == nvswitch) {
    return absl::InvalidArgumentError(
        absl::StrCat("resources.aliases: gpu and nvswitch are both \"", gpu,
                     "\": a pod would get a switch for a GPU; give them different names"));
  }
  return ResourceNames(std::move(options), std::move(ids), hyphens);
}

std::string ResourceNames::Name(DeviceKind kind, std::uint16_t device) const {
  const auto configured = options_.names.find(device);
  const auto& alias = kind == DeviceKind::kGpu ? options_.gpu_alias : options_.nvswitch_alias;
  std::string tail;
  if (configured != options_.names.end()) {
    tail = configured->second;
  } else if (alias.has_value() && !alias->empty()) {
    tail = *alias;
  } else if (const auto known = ids_.Name(device)) {
    tail = SpellModel(*known, hyphens_);
  }
  // Also a model of punctuation only, or one too long for Kubernetes.
  if (!IsResourceName(tail)) tail = absl::StrFormat("%04x", device);
  return absl::StrCat(kResourceVendor, "/", tail);
}

}  // namespace switchyard::kube
