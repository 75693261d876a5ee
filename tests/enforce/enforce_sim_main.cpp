// SPDX-License-Identifier: Apache-2.0
// The simulation of the whole core of `enforce`: many runs, each of its own seed. The first run
// that breaks a rule is played again with its story, and ends the program with 1.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <string>

#include "absl/synchronization/mutex.h"
#include "tests/enforce/world.h"

namespace {

using switchyard::enforce_sim::RuleName;
using switchyard::enforce_sim::World;

struct Options {
  std::uint64_t runs = 1000;
  std::uint64_t seed = 1;
  int operations = 200;
  bool trace = false;
  bool keep_going = false;
};

void Print(const World& world) {
  for (const std::string& line : world.stage().story) std::printf("%s\n", line.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Plays the whole core of `enforce` against models of all that is outside it");
  app.option_defaults()->always_capture_default();
  app.add_option("--runs", options.runs, "Runs, of the seeds S, S+1, ...");
  app.add_option("--seed", options.seed, "Of the first run");
  app.add_option("--operations", options.operations, "In each run")
      ->check(CLI::Range(1, 1'000'000));
  app.add_flag("--trace", options.trace,
               "Print the story of every run, not only of one that breaks a rule");
  app.add_flag("--keep-going", options.keep_going,
               "One line for each run that breaks a rule, and go on");
  app.footer(
      "Example: enforce_sim --runs 1 --seed 16644 --trace\n"
      "Exit codes: 0 no rule was broken; 1 one was; 2 wrong usage.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  // One thread, so no order of locks to watch.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  const auto began = std::chrono::steady_clock::now();
  const std::clock_t cpu = std::clock();
  std::uint64_t grants = 0;
  std::uint64_t crashes = 0;
  std::uint64_t broken = 0;
  for (std::uint64_t i = 0; i < options.runs; ++i) {
    const std::uint64_t seed = options.seed + i;
    World world(seed, options.trace);
    world.Run(options.operations);
    grants += static_cast<std::uint64_t>(world.grants());
    crashes += static_cast<std::uint64_t>(world.crashes());
    if (options.trace) Print(world);
    if (!world.stage().broken) continue;
    const auto& [rule, what] = *world.stage().broken;
    if (options.keep_going) {
      ++broken;
      std::printf("seed %llu, operation %d: %s: %s\n", static_cast<unsigned long long>(seed),
                  world.operation(), RuleName(rule), what.c_str());
      continue;
    }
    if (!options.trace) {
      World again(seed, true);
      again.Run(options.operations);
      Print(again);
    }
    std::printf(
        "\nenforce_sim: broken: %s: %s\n"
        "enforce_sim: seed %llu, operation %d, run %llu; again: --runs 1 --seed %llu --operations "
        "%d\n",
        RuleName(rule), what.c_str(), static_cast<unsigned long long>(seed), world.operation(),
        static_cast<unsigned long long>(i + 1), static_cast<unsigned long long>(seed),
        options.operations);
    return 1;
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  const double cpu_seconds = static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC;
  std::printf(
      "enforce_sim: %llu runs of %d operations, %llu grants, %llu deaths of the agent, %llu "
      "broken; "
      "%.1f s, %.0f runs/s of CPU\n",
      static_cast<unsigned long long>(options.runs), options.operations,
      static_cast<unsigned long long>(grants), static_cast<unsigned long long>(crashes),
      static_cast<unsigned long long>(broken), seconds,
      static_cast<double>(options.runs) / cpu_seconds);
  return broken == 0 ? 0 : 1;
}
