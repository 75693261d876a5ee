// SPDX-License-Identifier: Apache-2.0
#pragma once

// Between the logger and the thread that may write for it. Inside src/base only.

#include "absl/strings/string_view.h"

namespace switchyard {

class LogThread;

// Lines go there from now on; null: straight to standard error.
void SendLinesTo(LogThread* thread);

// All of it, or as much as can be written.
void WriteToStandardError(absl::string_view text);

}  // namespace switchyard
