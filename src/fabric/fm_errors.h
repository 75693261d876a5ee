// SPDX-License-Identifier: Apache-2.0
#pragma once

// A return code of libnvfm as an error that says what to do next. Each carries its FabricAnswer.
// Pure; any thread.

#include "absl/strings/string_view.h"
#include "base/status.h"
#include "fabric/fabric_reader.h"
#include "fabric/nvfm_abi.h"

namespace switchyard::fabric {

inline constexpr absl::string_view kListFunction = "fmGetSupportedFabricPartitions";

// What all calls have in common; `code` is not success. A code that is the caller's mistake, or
// documented nowhere, is kInternal.
[[nodiscard]] Status CallError(absl::string_view function, nvfm::Return code,
                               const FabricAddress& address);

// Of the list call: -4 there means one of FM's internal endpoints.
[[nodiscard]] Status ListError(nvfm::Return code, const FabricAddress& address);

// "-9 (CONNECTION_NOT_VALID) from fmConnect at 127.0.0.1:6666".
[[nodiscard]] std::string Answered(absl::string_view function, nvfm::Return code,
                                   const FabricAddress& address);

}  // namespace switchyard::fabric
