// SPDX-License-Identifier: Apache-2.0
#include "agent/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include "base/log.h"

namespace switchyard::agent {
namespace {

const char* SeverityName(Severity severity) {
  switch (severity) {
    case Severity::kDebug:
      return "debug";
    case Severity::kInfo:
      return "info";
    case Severity::kWarning:
      return "warning";
    case Severity::kError:
      return "error";
  }
  return "unknown";
}

}  // namespace

struct Metrics::Impl {
  prometheus::Registry registry;
  prometheus::Family<prometheus::Counter>& events =
      prometheus::BuildCounter()
          .Name("switchyard_events_total")
          .Help("Decisions and changes, by event and severity; the log has a line of each.")
          .Register(registry);
};

Metrics::Metrics() : impl_(std::make_unique<Impl>()) {}
Metrics::~Metrics() = default;

void Metrics::Report(const Event& event) {
  LogEvent(event);
  impl_->events
      .Add({{"event", std::string(event.name)}, {"severity", SeverityName(event.severity)}})
      .Increment();
}

std::string Metrics::Text(const std::vector<Gauge>& gauges) const {
  std::vector<prometheus::MetricFamily> families = impl_->registry.Collect();
  for (const Gauge& gauge : gauges) {
    const auto type =
        gauge.counter ? prometheus::MetricType::Counter : prometheus::MetricType::Gauge;
    prometheus::MetricFamily family{gauge.name, gauge.help, type, {}};
    for (const Gauge::Sample& sample : gauge.samples) {
      prometheus::ClientMetric metric;
      for (const auto& [name, value] : sample.labels) metric.label.push_back({name, value});
      (gauge.counter ? metric.counter.value : metric.gauge.value) = sample.value;
      family.metric.push_back(std::move(metric));
    }
    families.push_back(std::move(family));
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace switchyard::agent
