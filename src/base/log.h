// SPDX-License-Identifier: Apache-2.0
#pragma once

// Log lines on standard error, as key=value text or as JSON, one a line. Only apps and agent log
// above debug; a library reports events (base/event.h). InitLogging once, at start; Log from any
// thread. Lines before InitLogging are text at level info.

#include <initializer_list>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "base/event.h"

namespace switchyard {

enum class LogFormat { kText, kJson };

void InitLogging(LogFormat format, Severity level);

using LogField = std::pair<absl::string_view, std::string>;

// Values are quoted and escaped as needed, in both formats; a value over 4 KiB is cut.
void Log(Severity severity, absl::string_view message, std::initializer_list<LogField> fields = {});
void LogEvent(const Event& event);

}  // namespace switchyard
