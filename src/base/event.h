// SPDX-License-Identifier: Apache-2.0
#pragma once

// The event sink: how a library reports a decision that somebody must be able to see. The agent
// makes a log line, a metric and (later) a Kubernetes event of each; a test collects them.
// Libraries use this instead of logging. Report may be called from any thread and must not block.

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace switchyard {

enum class Severity { kDebug, kInfo, kWarning, kError };

struct Event {
  // A stable name in snake_case, the label of the metric: "allocate", "fabric_unreachable".
  absl::string_view name;  // a string literal: lives for ever
  Severity severity = Severity::kInfo;
  // One sentence for a person: what happened and, if something is wrong, what to do next.
  std::string message;
  // What a machine may look for; keys in snake_case, bounded values.
  std::vector<std::pair<absl::string_view, std::string>> fields;
};

class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void Report(const Event& event) = 0;
};

}  // namespace switchyard
