// SPDX-License-Identifier: Apache-2.0
// The rules for an extended resource's name (Kubernetes: labels and extended resources).
#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "sim/kubelet/registration_server.h"

namespace switchyard::sim {
namespace {

// kubelet checks the name with "requests." in front, as quotas use it.
constexpr size_t kMaxDomain = 253 - sizeof("requests.") + 1;
constexpr size_t kMaxName = 63;

bool IsDnsLabel(absl::string_view label) {
  return !label.empty() && label.size() <= 63 && label.front() != '-' && label.back() != '-' &&
         std::all_of(label.begin(), label.end(), [](char c) {
           return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-';
         });
}

bool IsDomain(absl::string_view domain) {
  if (domain.empty() || domain.size() > kMaxDomain) return false;
  for (const absl::string_view label : absl::StrSplit(domain, '.')) {
    if (!IsDnsLabel(label)) return false;
  }
  return true;
}

bool IsName(absl::string_view name) {
  return !name.empty() && name.size() <= kMaxName && absl::ascii_isalnum(name.front()) &&
         absl::ascii_isalnum(name.back()) && std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
         });
}

}  // namespace

Status CheckResourceName(absl::string_view name) {
  const auto refuse = [&](absl::string_view rule) {
    return absl::InvalidArgumentError(
        absl::StrCat("the resource name \"", name.substr(0, 320), "\" is invalid: ", rule));
  };
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(name, absl::MaxSplits('/', 1));
  if (!absl::StrContains(name, '/')) return refuse("it must be DOMAIN/NAME");
  if (absl::StrContains(name, "kubernetes.io/")) return refuse("kubernetes.io is reserved");
  if (absl::StartsWith(name, "requests.")) return refuse("\"requests.\" is reserved for quotas");
  if (!IsDomain(parts.first)) return refuse("the part before '/' must be a lower-case DNS domain");
  if (!IsName(parts.second)) {
    return refuse(
        "the part after '/' must be 1 to 63 letters, digits, '-', '_' or '.', the first and the "
        "last a letter or digit");
  }
  return OkStatus();
}

}  // namespace switchyard::sim
