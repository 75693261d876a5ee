// SPDX-License-Identifier: Apache-2.0
#include "fabric/nvfm_codes.h"

#include "absl/strings/str_cat.h"

namespace switchyard::fabric::nvfm {
namespace {

constexpr CodeInfo kCodes[] = {
    {0, "SUCCESS", Reading::kSuccess},
    {-1, "BADPARAM", Reading::kOther},
    {-2, "GENERIC_ERROR", Reading::kFabricFault},
    {-3, "NOT_SUPPORTED", Reading::kWrongMode},
    {-4, "UNINITIALIZED", Reading::kOther},  // has three meanings; see fm_errors.cpp, fm_change.cpp
    {-5, "TIMEOUT", Reading::kRetry},
    {-6, "VERSION_MISMATCH", Reading::kAbi},
    {-7, "IN_USE", Reading::kOther},
    {-8, "NOT_CONFIGURED", Reading::kRetry},
    {-9, "CONNECTION_NOT_VALID", Reading::kReconnect},
    {-10, "NVLINK_ERROR", Reading::kFabricFault},
    // From release 575.
    {-11, "RESOURCE_BAD", Reading::kOther},
    {-12, "RESOURCE_IN_USE", Reading::kOther},
    {-13, "RESOURCE_NOT_IN_USE", Reading::kOther},
    {-14, "RESOURCE_EXHAUSTED", Reading::kOther},
    {-15, "RESOURCE_NOT_READY", Reading::kRetry},
    {-16, "PARTITION_EXISTS", Reading::kOther},
    {-17, "PARTITION_ID_IN_USE", Reading::kOther},
    {-18, "PARTITION_ID_NOT_IN_USE", Reading::kOther},
    {-19, "PARTITION_NAME_IN_USE", Reading::kOther},
    {-20, "PARTITION_NAME_NOT_IN_USE", Reading::kOther},
    {-21, "PARTITION_ID_NAME_MISMATCH", Reading::kOther},
    {-22, "NOT_READY", Reading::kRetry},
    {-23, "RESOURCE_USED_IN_THIS_PARTITION", Reading::kOther},
    {-24, "RESOURCE_USED_IN_ANOTHER_PARTITION", Reading::kOther},
    // From 2026.
    {-25, "PARTITION_MISWIRED_TRUNKS", Reading::kFabricFault},
    {-26, "PARTITION_INSUFFICIENT_TRUNKS", Reading::kFabricFault},
    {-27, "PARTITION_MISSING_SWITCHES", Reading::kFabricFault},
    {-28, "PARTITION_NETWORK_CONFIG_ERROR", Reading::kFabricFault},
    {-29, "PARTITION_ROUTE_PROGRAMMING_ERROR", Reading::kFabricFault},
};

const CodeInfo* Find(Return code) {
  for (const CodeInfo& info : kCodes) {
    if (info.code == code) return &info;
  }
  return nullptr;
}

}  // namespace

std::span<const CodeInfo> Codes() { return kCodes; }

Reading ReadingOf(Return code) {
  const CodeInfo* info = Find(code);
  return info == nullptr ? Reading::kOther : info->reading;
}

std::string CodeToString(Return code) {
  const CodeInfo* info = Find(code);
  return absl::StrCat(code, " (", info == nullptr ? "not a documented code" : info->name, ")");
}

}  // namespace switchyard::fabric::nvfm
