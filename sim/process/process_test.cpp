// SPDX-License-Identifier: Apache-2.0
#include "sim/process/process.h"

#include <gtest/gtest.h>

namespace switchyard::sim {
namespace {

constexpr absl::Duration kLong = absl::Seconds(30);

TEST(Process, WaitsForALineAndForTheEnd) {
  auto process =
      Process::Start({"sh", "-c", "echo one; echo \"two $WORD\" >&2; exit 3"}, {"WORD=three"});
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_EQ((*process)->WaitForLine("two", kLong), "two three");
  EXPECT_EQ((*process)->WaitForLine("never", kLong), std::nullopt);  // the output ends
  EXPECT_EQ((*process)->Wait(kLong), 3);
}

TEST(Process, AMarkHidesWhatCameBefore) {
  auto process = Process::Start({"sh", "-c", "echo a; read x < /dev/null; echo b; exec sleep 60"});
  ASSERT_TRUE(process.ok());
  ASSERT_TRUE((*process)->WaitForLine("b", kLong).has_value());
  (*process)->Mark();
  (*process)->Kill();
  EXPECT_EQ((*process)->WaitForLine("a", kLong), std::nullopt);
}

TEST(Process, StopAsksFirstAndReportsTheSignalOtherwise) {
  auto polite =
      Process::Start({"sh", "-c", "trap 'exit 0' TERM; echo up; while :; do sleep 0.05; done"});
  ASSERT_TRUE(polite.ok());
  ASSERT_TRUE((*polite)->WaitForLine("up", kLong).has_value());
  EXPECT_EQ((*polite)->Stop(kLong), 0);
  auto deaf = Process::Start({"sleep", "60"});
  ASSERT_TRUE(deaf.ok());
  EXPECT_EQ((*deaf)->Stop(kLong), 128 + 15);
}

TEST(Process, WhatDoesNotExistIsAnError) {
  EXPECT_EQ(Process::Start({"/no/such/program"}).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace switchyard::sim
