// SPDX-License-Identifier: Apache-2.0
#include "agent/timed_fabric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace switchyard::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Each call takes `takes` and answers `answer`.
class SlowFabric final : public fabric::FabricControl {
 public:
  explicit SlowFabric(SimClock& clock) : clock_(clock) {}
  Result<fabric::FabricList> ReadPartitions() override { return Answer(); }
  Result<fabric::ModuleEntries> ReadModuleIds() override {
    clock_.Advance(takes);
    return fabric::ModuleEntries{};
  }
  Result<fabric::FabricList> Activate(int partition, absl::Duration within) override {
    changed = partition;
    had = within;
    return Answer();
  }
  Result<fabric::FabricList> Deactivate(int partition, absl::Duration within) override {
    return Activate(partition, within);
  }
  Result<fabric::FabricList> SetActivated(std::span<const int> partitions) override {
    sent.assign(partitions.begin(), partitions.end());
    return Answer();
  }

  Status answer;
  absl::Duration takes = absl::Seconds(2);
  int changed = 0;
  absl::Duration had;
  std::vector<int> sent;

 private:
  Result<fabric::FabricList> Answer() {
    clock_.Advance(takes);
    if (!answer.ok()) return answer;
    return fabric::FabricList{};
  }
  SimClock& clock_;
};

class Timings final : public EventSink {
 public:
  void Report(const Event& /*event*/) override {}
  void Measure(const Timing& timing) override {
    std::string line = absl::StrCat(timing.name, " ", absl::FormatDuration(timing.took));
    for (const auto& [key, value] : timing.labels) absl::StrAppend(&line, " ", key, "=", value);
    lines.push_back(std::move(line));
  }
  std::vector<std::string> lines;
};

class TimedFabricTest : public ::testing::Test {
 protected:
  SimClock clock_;
  SlowFabric fabric_{clock_};
  Timings timings_;
  TimedFabric timed_{fabric_, clock_, timings_};
};

TEST_F(TimedFabricTest, EachCallGoesThroughAndIsMeasured) {
  const std::vector<int> sent = {3, 5};
  EXPECT_TRUE(timed_.ReadPartitions().ok());
  EXPECT_TRUE(timed_.ReadModuleIds().ok());
  EXPECT_TRUE(timed_.Activate(7, absl::Seconds(9)).ok());
  EXPECT_EQ(fabric_.changed, 7);
  EXPECT_EQ(fabric_.had, absl::Seconds(9));
  EXPECT_TRUE(timed_.Deactivate(8, absl::Seconds(4)).ok());
  EXPECT_EQ(fabric_.changed, 8);
  EXPECT_EQ(fabric_.had, absl::Seconds(4));
  EXPECT_TRUE(timed_.SetActivated(sent).ok());
  EXPECT_EQ(fabric_.sent, sent);
  EXPECT_THAT(timings_.lines, ElementsAre("fabric_call 2s call=read outcome=ok",
                                          "fabric_call 2s call=read_module_ids outcome=ok",
                                          "fabric_call 2s call=activate outcome=ok",
                                          "fabric_call 2s call=deactivate outcome=ok",
                                          "fabric_call 2s call=set_activated outcome=ok"));
}

TEST_F(TimedFabricTest, AFailureIsMeasuredAndOneThatMadeWayIsNot) {
  fabric_.answer = absl::DeadlineExceededError("no answer");
  EXPECT_EQ(timed_.Activate(7, absl::Seconds(9)).status(), fabric_.answer);
  EXPECT_THAT(timings_.lines, ElementsAre("fabric_call 2s call=activate outcome=failed"));
  timings_.lines.clear();
  fabric_.answer = absl::CancelledError("a change went first");
  EXPECT_EQ(timed_.ReadPartitions().status(), fabric_.answer);
  EXPECT_THAT(timings_.lines, IsEmpty());
}

}  // namespace
}  // namespace switchyard::agent
