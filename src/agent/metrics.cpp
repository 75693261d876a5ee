// SPDX-License-Identifier: Apache-2.0
#include "agent/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
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

// Seconds. The defaults of allocate.wait and fabric.timeout and their sum are bounds of their own:
// what lies above was cut off by them.
const prometheus::Histogram::BucketBoundaries kBuckets = {
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 20};

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

void Metrics::Measure(const Timing& timing) {
  prometheus::Labels labels;
  for (const auto& [name, value] : timing.labels) labels.emplace(name, value);
  // Registering what is there returns it.
  prometheus::BuildHistogram()
      .Name(absl::StrCat("switchyard_", timing.name, "_duration_seconds"))
      .Help("How long it took.")
      .Register(impl_->registry)
      .Add(labels, kBuckets)
      .Observe(absl::ToDoubleSeconds(timing.took));
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
