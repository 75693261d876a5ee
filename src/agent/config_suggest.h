// SPDX-License-Identifier: Apache-2.0
#pragma once

// The valid name that a mistyped one most likely meant. Pure.

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace switchyard::agent {

// The candidate with the fewest single-character edits to `name`, upper and lower case, - _ and .
// taken alike; a candidate whose last part is the whole name counts as one edit. Ties: the first.
// Empty without candidates.
[[nodiscard]] std::string Nearest(absl::string_view name,
                                  const std::vector<std::string>& candidates);

}  // namespace switchyard::agent
