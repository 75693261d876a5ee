// SPDX-License-Identifier: Apache-2.0
#pragma once

// What libnvfm's return codes are called and how to read them. Newer Fabric Managers may return
// numbers that are not in the table: those are errors like any other, never a success.

#include <span>
#include <string>

#include "absl/strings/string_view.h"
#include "fabric/nvfm_abi.h"

namespace switchyard::fabric::nvfm {

enum class Reading {
  kSuccess,
  kRetry,        // FM is starting or busy: the same call may succeed later
  kReconnect,    // the connection is gone or was never there
  kWrongMode,    // FM does not run in shared NVSwitch mode
  kAbi,          // FM does not know the version of a structure
  kFabricFault,  // hardware or routing: somebody must look at FM's log
  kOther,        // depends on the call, or a mistake of the caller
};

struct CodeInfo {
  Return code;
  absl::string_view name;
  Reading reading;
};

// Those that somebody decides by.
inline constexpr Return kSuccess = 0;
inline constexpr Return kBadParam = -1;
inline constexpr Return kNotSupported = -3;
inline constexpr Return kUninitialized = -4;
inline constexpr Return kVersionMismatch = -6;
inline constexpr Return kInUse = -7;
inline constexpr Return kConnectionNotValid = -9;
inline constexpr Return kResourceInUse = -12;
inline constexpr Return kResourceNotInUse = -13;
inline constexpr Return kPartitionExists = -16;
inline constexpr Return kPartitionIdInUse = -17;
inline constexpr Return kPartitionIdNotInUse = -18;
inline constexpr Return kUsedInThisPartition = -23;
inline constexpr Return kUsedInAnotherPartition = -24;

// Every documented code, from 0 downwards.
[[nodiscard]] std::span<const CodeInfo> Codes();

// kOther for a number that is not documented.
[[nodiscard]] Reading ReadingOf(Return code);

// "-9 (CONNECTION_NOT_VALID)"; "-99 (not a documented code)".
[[nodiscard]] std::string CodeToString(Return code);

}  // namespace switchyard::fabric::nvfm
