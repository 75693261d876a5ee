// SPDX-License-Identifier: Apache-2.0
#pragma once

// A tenancy as text, for the journal. Pure.

#include <string>

#include "absl/strings/string_view.h"
#include "base/status.h"
#include "tenancy/record.h"

namespace switchyard::tenancy {

// Of what FormatRecord writes. A reader refuses a newer one: it may mean what it can't see.
inline constexpr int kRecordVersion = 1;

[[nodiscard]] std::string FormatRecord(const TenancyRecord& record);

// `name` begins every message. kFailedPrecondition: a newer version; kInvalidArgument names key,
// value and rule of anything else that is wrong: a missing or unknown key, a value out of range.
[[nodiscard]] Result<TenancyRecord> ParseRecord(absl::string_view json, absl::string_view name);

}  // namespace switchyard::tenancy
