// SPDX-License-Identifier: Apache-2.0
#include "agent/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace switchyard::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Metrics, CountsEventsByNameAndSeverity) {
  Metrics metrics;
  metrics.Report({"allocate", Severity::kInfo, "granted", {}});
  metrics.Report({"allocate", Severity::kInfo, "granted", {}});
  metrics.Report({"allocate", Severity::kError, "refused", {}});
  const std::string text = metrics.Text({});
  EXPECT_THAT(text, HasSubstr("switchyard_events_total{event=\"allocate\",severity=\"info\"} 2"));
  EXPECT_THAT(text, HasSubstr("switchyard_events_total{event=\"allocate\",severity=\"error\"} 1"));
}

TEST(Metrics, GaugesAreOnlyWhatThisScrapeWasGiven) {
  const Metrics metrics;
  const Gauge up{"switchyard_fabric_up", "Whether FM answered.", {{{}, 1}}};
  EXPECT_THAT(metrics.Text({up}), HasSubstr("\nswitchyard_fabric_up 1\n"));
  EXPECT_THAT(metrics.Text({}), Not(HasSubstr("switchyard_fabric_up")));
}

TEST(Metrics, TimingsAreHistograms) {
  Metrics metrics;
  EXPECT_THAT(metrics.Text({}), Not(HasSubstr("duration_seconds")));
  metrics.Measure({"allocate", absl::Milliseconds(3), {{"outcome", "granted"}}});
  metrics.Measure({"allocate", absl::Seconds(5), {{"outcome", "granted"}}});
  metrics.Measure({"allocate", absl::Seconds(21), {{"outcome", "refused"}}});
  metrics.Measure({"reconcile", absl::Microseconds(200), {}});
  const std::string text = metrics.Text({});
  for (const char* line : {
           "switchyard_allocate_duration_seconds_count{outcome=\"granted\"} 2",
           "switchyard_allocate_duration_seconds_sum{outcome=\"granted\"} 5.003",
           "switchyard_allocate_duration_seconds_bucket{outcome=\"granted\",le=\"0.0025\"} 0",
           "switchyard_allocate_duration_seconds_bucket{outcome=\"granted\",le=\"0.005\"} 1",
           "switchyard_allocate_duration_seconds_bucket{outcome=\"granted\",le=\"5\"} 2",
           "switchyard_allocate_duration_seconds_bucket{outcome=\"refused\",le=\"20\"} 0",
           "switchyard_allocate_duration_seconds_bucket{outcome=\"refused\",le=\"+Inf\"} 1",
           "switchyard_reconcile_duration_seconds_bucket{le=\"0.0005\"} 1",
       }) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(Metrics, LabelValuesAreEscaped) {
  const Metrics metrics;
  const Gauge gauge{"switchyard_devices", "x", {{{{"resource", "a\"b\n"}}, 1}}};
  EXPECT_THAT(metrics.Text({gauge}), HasSubstr("resource=\"a\\\"b\\n\""));
}

}  // namespace
}  // namespace switchyard::agent
