// SPDX-License-Identifier: Apache-2.0
#pragma once

// The event sink: how a library reports a decision that somebody must be able to see. The agent
// makes a log line, a metric and a Kubernetes event of each; a test collects them.
// Libraries use this instead of logging. Both may be called from any thread and must not block.

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

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

// How long something took, for a histogram.
struct Timing {
  absl::string_view name;  // a string literal in snake_case: "allocate"
  absl::Duration took;
  // Keys and values are string literals: there are few of them.
  std::vector<std::pair<absl::string_view, absl::string_view>> labels;
};

class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void Report(const Event& event) = 0;
  // Who keeps no histograms ignores it.
  virtual void Measure(const Timing& timing) { (void)timing; }
};

}  // namespace switchyard
