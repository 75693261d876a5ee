// SPDX-License-Identifier: Apache-2.0
#include "bench/placement/report.h"

#include <gmock/gmock.h>

#include <sstream>

namespace switchyard::bench {
namespace {

using ::testing::HasSubstr;

PlacementOptions Small() {
  PlacementOptions options;
  options.boards = {"hgx-h100"};
  options.mixes = {ParseMix("1:50,2:25,4:15,8:10").value()};
  options.loads = {0.9};
  options.pods = 400;
  options.runs = 4;
  return options;
}

std::string Replayed(const PlacementOptions& options) {
  std::ostringstream out;
  const Status status = ReportReplay(options, out);
  EXPECT_TRUE(status.ok()) << status;
  return out.str();
}

TEST(Report, TheSameOptionsGiveTheSameText) {
  PlacementOptions options = Small();
  const std::string text = Replayed(options);
  EXPECT_EQ(text, Replayed(options));
  options.seed = 2;
  EXPECT_NE(text, Replayed(options));
}

TEST(Report, SaysWhatWasMeasuredAndWhere) {
  const std::string text = Replayed(Small());
  EXPECT_THAT(text, HasSubstr("4 runs of 100 pods a cell, seed 1"));
  EXPECT_THAT(text, HasSubstr("hgx-h100: 8 GPUs, 15 partitions, 677 states, 67 up to symmetry"));
  EXPECT_THAT(text, HasSubstr("\n| 1:50 2:25 4:15 8:10 | 0.9 | "));
  EXPECT_THAT(text, HasSubstr("pack / optimum is lowest, 0."));
}

TEST(Report, ASizeTheBoardLacksIsRefused) {
  PlacementOptions options = Small();
  options.mixes = {ParseMix("1:50,3:50").value()};
  std::ostringstream out;
  EXPECT_EQ(ReportReplay(options, out).message(),
            "board hgx-h100 has no partition of 3 GPUs; leave that size out of --mix");
}

TEST(Report, OneRunHasNoStandardError) {
  PlacementOptions options = Small();
  options.runs = 1;
  std::ostringstream out;
  EXPECT_EQ(ReportReplay(options, out).code(), absl::StatusCode::kInvalidArgument);
}

TEST(Report, EveryMixNeedsAStepThatDivides) {
  std::ostringstream out;
  EXPECT_EQ(ReportEveryMix(Small(), 30, out).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReportEveryMix(Small(), 0, out).code(), absl::StatusCode::kInvalidArgument);
}

TEST(Report, EveryMixHasARowOfEachMeasure) {
  std::ostringstream out;
  const Status status = ReportEveryMix(Small(), 100, out);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(out.str(), HasSubstr("4 mixes of 1, 2, 4 and 8 GPUs in steps of 100 %"));
  EXPECT_THAT(out.str(), HasSubstr("\n| pods | 0.9 | "));
  EXPECT_THAT(out.str(), HasSubstr("\n| GPUs | 0.9 | "));
}

TEST(Mix, IsParsedIntoShares) {
  const Mix mix = ParseMix("1:3,8:1").value();
  ASSERT_EQ(mix.size(), 2u);
  EXPECT_EQ(mix[0].size, 1);
  EXPECT_EQ(mix[0].share, 0.75);
  EXPECT_EQ(MixName(mix), "1:75 8:25");
  EXPECT_EQ(DemandOf(mix, 0.9, 11).arrivals, 0.9 * 11 / 2.75);
}

TEST(Mix, NamesThePartThatIsWrong) {
  for (const char* text : {"", "1", "1:2:3", "a:1", "1:b", "0:1", "17:1", "1:0", "1:-1", "1:nan",
                           "1:inf", "1:1,1:2"}) {
    const auto mix = ParseMix(text);
    EXPECT_EQ(mix.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(mix.status().message(), HasSubstr("write it like 1:50,2:25,4:15,8:10"));
  }
}

TEST(Mix, EveryMixCoversTheSimplex) {
  const std::vector<Mix> mixes = EveryMix({1, 2, 4, 8}, 10);
  EXPECT_EQ(mixes.size(), 286u);  // 10 steps to 4 sizes: 13 over 3
  for (const Mix& mix : mixes) {
    double sum = 0;
    for (const Share& s : mix) {
      EXPECT_GT(s.share, 0);
      sum += s.share;
    }
    EXPECT_NEAR(sum, 1, 1e-12);
  }
}

}  // namespace
}  // namespace switchyard::bench
