// SPDX-License-Identifier: Apache-2.0
#pragma once

// The board files that came with the build: name ("hgx-h100") to the text of sim/boards/NAME.json.
// Immutable; any thread.

#include <map>
#include <string>

namespace switchyard::sim {

[[nodiscard]] const std::map<std::string, std::string>& BuiltInBoards();

}  // namespace switchyard::sim
