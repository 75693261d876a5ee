// SPDX-License-Identifier: Apache-2.0
#include "tenancy/record.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace switchyard::tenancy {

Result<BootId> BootId::Parse(absl::string_view text) {
  const absl::string_view id = absl::StripAsciiWhitespace(text);
  constexpr size_t kDashes[] = {8, 13, 18, 23};
  bool shaped = id.size() == 36;
  std::string digits;
  for (size_t i = 0; shaped && i < id.size(); ++i) {
    const bool dash = std::find(std::begin(kDashes), std::end(kDashes), i) != std::end(kDashes);
    if (dash != (id[i] == '-') ||
        (!dash && !absl::ascii_isxdigit(static_cast<unsigned char>(id[i]))))
      shaped = false;
    if (!dash) digits.push_back(id[i]);
  }
  BootId boot;
  if (!shaped || !absl::SimpleHexAtoi(digits.substr(0, 16), &boot.high) ||
      !absl::SimpleHexAtoi(digits.substr(16), &boot.low) || !boot.known()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", absl::CHexEscape(id.substr(0, 64)),
                     "\" is no boot id: 32 hexadecimal digits in groups of 8-4-4-4-12, not all 0"));
  }
  return boot;
}

std::string BootId::ToString() const {
  return absl::StrFormat("%08x-%04x-%04x-%04x-%012x", high >> 32, high >> 16 & 0xffff,
                         high & 0xffff, low >> 48, low & 0xffffffffffff);
}

absl::string_view TenancyStateName(TenancyState state) {
  switch (state) {
    case TenancyState::kPlanned:
      return "planned";
    case TenancyState::kActivating:
      return "activating";
    case TenancyState::kActive:
      return "active";
    case TenancyState::kReleasing:
      return "releasing";
  }
  return "unknown";
}

bool SameNodes(const TenancyDevice& then, const TenancyDevice& now) {
  if (then.address != now.address || then.backend != now.backend ||
      then.iommu_group != now.iommu_group || then.functions.size() != now.functions.size()) {
    return false;
  }
  return std::equal(then.functions.begin(), then.functions.end(), now.functions.begin(),
                    [](const TenancyFunction& a, const TenancyFunction& b) {
                      return a.address == b.address && a.cdev == b.cdev;
                    });
}

}  // namespace switchyard::tenancy
