// SPDX-License-Identifier: Apache-2.0
// placement: how many of the pods that come and go on a board get their partition, by allocator,
// beside the best that can be done. docs/performance.md says what is measured and what came out.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>

#include "bench/placement/report.h"

namespace {

constexpr char kExamples[] =
    "Examples:\n"
    "  placement                                       # all boards, under a minute\n"
    "  placement --pods 2000000                        # a quarter of the standard error\n"
    "  placement --board hgx-h100 --mix 1:90,8:10 --load 0.9\n"
    "  placement --linger 0.05                         # a grace time\n"
    "  placement --every-mix 10 --board hgx-h100 --board hgx-b200\n"
    "Exit codes: 0 ok, 1 failed, 2 wrong usage.";

}  // namespace

int main(int argc, char** argv) {
  switchyard::bench::PlacementOptions options;
  options.boards = {"hgx-h100", "hgx-b200", "hgx-a100-16", "hgx-2"};
  options.loads = {0.7, 0.8, 0.9, 1.0, 1.1};
  options.pods = 100000;
  options.runs = 20;
  std::vector<std::string> mixes = {"1:50,2:25,4:15,8:10", "1:25,2:25,4:25,8:25",
                                    "1:10,2:20,4:30,8:40"};
  int step = 0;
  bool by_gpus = false;

  CLI::App app("Replays pods on a board and compares what allocators accept with the optimum");
  app.name("placement");
  app.add_option("--board", options.boards, "Name or .json file; repeatable")
      ->capture_default_str();
  app.add_option("--mix", mixes, "SIZE:WEIGHT,...; repeatable")
      ->allow_extra_args(false)
      ->capture_default_str();
  app.add_option("--load", options.loads, "GPUs asked for, as a part of the board's; repeatable")
      ->check(CLI::Range(0.01, 10.0))
      ->capture_default_str();
  app.add_option("--pods", options.pods, "Counted pods a cell and allocator")
      ->check(CLI::Range(std::int64_t{2}, std::int64_t{10'000'000'000}))
      ->capture_default_str();
  app.add_option("--runs", options.runs, "Independent runs a cell, for the standard error")
      ->check(CLI::Range(2, 10000))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Of pods and addresses")->capture_default_str();
  app.add_flag("--by-gpus", by_gpus, "Count accepted GPUs, not pods; the optimum too");
  app.add_option("--linger", options.linger,
                 "How long a partition stays active after its pod, in mean holding times")
      ->check(CLI::Range(0.0, 1000.0))
      ->capture_default_str();
  auto* every = app.add_option("--every-mix", step,
                               "No replay: exact values, pods and GPUs, over every mix in steps of "
                               "so many %");
  app.footer(kExamples);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (by_gpus) options.measure = switchyard::bench::Measure::kGpus;
  for (const std::string& text : mixes) {
    const auto mix = switchyard::bench::ParseMix(text);
    if (!mix.ok()) {
      std::fprintf(stderr, "placement: %s\n", std::string(mix.status().message()).c_str());
      return 2;
    }
    options.mixes.push_back(*mix);
  }
  const switchyard::Status status =
      every->count() > 0 ? switchyard::bench::ReportEveryMix(options, step, std::cout)
                         : switchyard::bench::ReportReplay(options, std::cout);
  if (!status.ok()) {
    std::fprintf(stderr, "placement: %s\n", std::string(status.message()).c_str());
    return status.code() == absl::StatusCode::kInvalidArgument ? 2 : 1;
  }
  return 0;
}
