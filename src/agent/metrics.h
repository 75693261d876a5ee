// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the agent does with events: each becomes a log line and a count; what took a while is an
// observation of a histogram. Gauges are not kept: they are made from the state at the moment of
// the scrape, so none can be stale. Any thread.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/event.h"

namespace switchyard::agent {

// One gauge with all its label values at this moment; or a counter that somebody else keeps.
struct Gauge {
  struct Sample {
    std::vector<std::pair<std::string, std::string>> labels;
    double value = 0;
  };
  std::string name;  // switchyard_..., with the unit at the end
  std::string help;
  std::vector<Sample> samples;
  bool counter = false;
};

class Metrics final : public EventSink {
 public:
  Metrics();
  ~Metrics() override;

  void Report(const Event& event) override;
  void Measure(const Timing& timing) override;

  // The Prometheus text format: switchyard_events_total{event,severity},
  // switchyard_NAME_duration_seconds of each timing that was measured, and `gauges`.
  [[nodiscard]] std::string Text(const std::vector<Gauge>& gauges) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace switchyard::agent
