// SPDX-License-Identifier: Apache-2.0
// The simulation of the whole core of `enforce`: many runs, each of its own seed. The first run
// that breaks a rule is played again with its story, and ends the program with 1.
#include <chrono>
#include <cstdio>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "tests/enforce/world.h"

namespace {

using switchyard::enforce_sim::RuleName;
using switchyard::enforce_sim::World;

constexpr char kUsage[] =
    "usage: enforce_sim [--runs N] [--seed S] [--operations N] [--trace] [--keep-going]\n\n"
    "  --runs N        runs, of the seeds S, S+1, ... (1000)\n"
    "  --seed S        of the first run (1)\n"
    "  --operations N  in each run (200)\n"
    "  --trace         print the story of every run, not only of one that breaks a rule\n"
    "  --keep-going    one line for each run that breaks a rule, and go on\n\n"
    "Exit code: 0 if no rule was broken, 1 if one was, 2 if the command line is wrong.\n";

struct Options {
  std::uint64_t runs = 1000;
  std::uint64_t seed = 1;
  int operations = 200;
  bool trace = false;
  bool keep_going = false;
};

bool Parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const absl::string_view word = argv[i];
    if (word == "--trace") {
      options.trace = true;
      continue;
    }
    if (word == "--keep-going") {
      options.keep_going = true;
      continue;
    }
    const char* const value = i + 1 < argc ? argv[++i] : "";
    if (word == "--runs"   ? absl::SimpleAtoi(value, &options.runs)
        : word == "--seed" ? absl::SimpleAtoi(value, &options.seed)
        : word == "--operations"
            ? absl::SimpleAtoi(value, &options.operations) && options.operations > 0
            : false) {
      continue;
    }
    std::fputs(kUsage, stderr);
    return false;
  }
  return true;
}

void Print(const World& world) {
  for (const std::string& line : world.stage().story) std::printf("%s\n", line.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!Parse(argc, argv, options)) return 2;
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
