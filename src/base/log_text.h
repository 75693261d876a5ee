// SPDX-License-Identifier: Apache-2.0
#pragma once

// How a log line spells its values, whatever bytes they are: spdlog's own JSON pattern does not
// escape. Pure; any thread.

#include <string>

#include "absl/strings/string_view.h"

namespace switchyard {

// A JSON string with its quotes. What is no UTF-8 (a file's content in an error) becomes U+FFFD; a
// value over 4 KiB is cut, between characters.
void AppendQuotedValue(std::string& out, absl::string_view value);

// The value as it is if it is one plain ASCII word, else quoted as above.
void AppendTextValue(std::string& out, absl::string_view value);

}  // namespace switchyard
