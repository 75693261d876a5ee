// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which of libnvfm's calls failed and with which code, kept beside the words of an error: whoever
// decides by FM's code (metrics, whether FM waits for the active list) must not parse a message.
// Survives Annotate and the helper process. Pure; any thread.

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "base/status.h"

namespace switchyard::fabric {

struct FabricAnswer {
  std::string function;  // "fmConnect"
  int code = 0;          // never 0, which is libnvfm's success
  friend bool operator==(const FabricAnswer&, const FabricAnswer&) = default;
};

[[nodiscard]] Status WithFabricAnswer(Status status, const FabricAnswer& answer);

// None if the error is not FM's word: no library, a deadline, a crash, a list that breaks a rule.
[[nodiscard]] std::optional<FabricAnswer> FabricAnswerOf(const Status& status);

}  // namespace switchyard::fabric
