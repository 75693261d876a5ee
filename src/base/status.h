// SPDX-License-Identifier: Apache-2.0
#pragma once

// Status and Result: how every function of ours reports failure. No exception crosses one of our
// boundaries. Codes are the canonical ones, so an error becomes a gRPC status unchanged. Each
// boundary adds its context in front: "reading the module map: /run/x.json: value 17 ...".

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace switchyard {

using absl::OkStatus;
using absl::Status;

template <typename T>
using Result = absl::StatusOr<T>;

// "context: message", same code. OK stays OK.
[[nodiscard]] Status Annotate(const Status& status, absl::string_view context);

// The canonical code of errno `error`; the message is "what: strerror".
[[nodiscard]] Status ErrnoError(int error, absl::string_view what);

}  // namespace switchyard

#define SWITCHYARD_CONCAT_(a, b) a##b
#define SWITCHYARD_CONCAT(a, b) SWITCHYARD_CONCAT_(a, b)

#define RETURN_IF_ERROR(expression)                                                        \
  do {                                                                                     \
    if (::switchyard::Status status_of_it = (expression); !status_of_it.ok()) [[unlikely]] \
      return status_of_it;                                                                 \
  } while (false)

#define ASSIGN_OR_RETURN(declaration, expression) \
  ASSIGN_OR_RETURN_(SWITCHYARD_CONCAT(result_of_, __LINE__), declaration, expression)
#define ASSIGN_OR_RETURN_(result, declaration, expression) \
  auto result = (expression);                              \
  if (!result.ok()) [[unlikely]]                           \
    return std::move(result).status();                     \
  declaration = *std::move(result)
