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

TEST(Metrics, LabelValuesAreEscaped) {
  const Metrics metrics;
  const Gauge gauge{"switchyard_devices", "x", {{{{"resource", "a\"b\n"}}, 1}}};
  EXPECT_THAT(metrics.Text({gauge}), HasSubstr("resource=\"a\\\"b\\n\""));
}

}  // namespace
}  // namespace switchyard::agent
