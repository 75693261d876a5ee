// SPDX-License-Identifier: Apache-2.0
// The kill test: the real agent in `enforce` on a simulated node, killed again and again.
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <string>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "sim/node/sim_node.h"
#include "tests/kill/agent.h"
#include "tests/kill/run.h"
#include "tests/kill/story.h"

namespace {

using switchyard::Result;
using switchyard::Status;
using switchyard::kill::Agent;
using switchyard::kill::Run;
using switchyard::kill::Story;
using switchyard::kill::Tally;
using switchyard::kill::Wrong;

struct Options {
  int allocations = 1000;
  std::uint64_t seed = 1;
  std::string board = "hgx-h100";
  bool trace = false;
};

Status Play(const Options& options, const std::string& folder, Story& story) {
  switchyard::sim::SimNodeOptions node_options;
  node_options.dir = folder;
  node_options.board = options.board;
  node_options.seed = options.seed;
  ASSIGN_OR_RETURN(const auto node, switchyard::sim::SimNode::Create(node_options));
  const std::string config = absl::StrCat(folder, "/kill.yaml");
  RETURN_IF_ERROR(switchyard::WriteFileAtomically(
      config, node->AgentYaml({{"fabric.mode", "enforce"},
                               {"fabric.restart", "warm"},
                               {"fabric.probeInterval", "100ms"},
                               {"fabric.timeout", "500ms"},
                               {"allocate.wait", "200ms"},
                               {"tenancy.grace", "300ms"},
                               {"http.address", "\"127.0.0.1:0\""}})));
  ASSIGN_OR_RETURN(const std::string self, switchyard::ReadLink("/proc/self/exe"));
  Agent agent(*node, (std::filesystem::path(self).parent_path() / "switchyard").string(), config);
  Run run(*node, agent, story, options.seed);
  run.Play(options.allocations);
  if (!story.broken()) return switchyard::OkStatus();
  std::printf("\n");
  for (const std::string& line : story.lines()) std::printf("%s\n", line.c_str());
  std::printf("\n%s\n", agent.Log().c_str());
  return switchyard::OkStatus();
}

int Report(const Options& options, Story& story) {
  Tally& tally = story.tally;
  std::printf("\n");
  for (const auto& [moment, count] : tally.kills_by_moment)
    std::printf("%5d kills: %s\n", count, moment.c_str());
  std::printf("%5d helper processes ended with their agent\n", tally.helpers);
  std::printf("%5d pods admitted, %d refused, %d of those with nothing done to them; %.0f s\n",
              tally.admitted, tally.allocations - tally.admitted, tally.refused_undisturbed,
              absl::ToDoubleSeconds(story.Since()));
  int code = 0;
  if (story.broken()) {
    std::printf("kill test: wrong: %s\nkill test: again: --allocations %d --seed %llu --board %s\n",
                story.first().c_str(), options.allocations,
                static_cast<unsigned long long>(options.seed), options.board.c_str());
    code = 1;
  } else if (tally.admitted * 2 < tally.allocations) {
    std::printf("kill test: fewer than half of the pods were admitted, which proves too little\n");
    code = 1;
  }
  std::printf(
      "kill test: %d allocations, %d kills, %d FM restarts, %d kubelet restarts: leaked %d, shared "
      "%d, lost %d\n",
      tally.allocations, tally.kills, tally.fm_restarts, tally.kubelet_restarts,
      tally.wrong[Wrong::kLeaked], tally.wrong[Wrong::kShared], tally.wrong[Wrong::kLost]);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Kills the agent (`switchyard` beside this program) in `enforce` on a simulated node again "
      "and again");
  app.option_defaults()->always_capture_default();
  app.add_option("--allocations", options.allocations, "How many pods ask for GPUs")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--seed", options.seed, "Of what is done, and when");
  app.add_option("--board", options.board, "Of the simulated node");
  app.add_flag("--trace", options.trace, "Print the story as it happens");
  app.footer(
      "Example: kill_test --allocations 200 --seed 7 --trace\n"
      "Exit codes: 0 nothing leaked, was shared or was lost; 1 something was; 2 wrong usage.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  // What a killed agent leaves behind is ours to watch.
  (void)::prctl(PR_SET_CHILD_SUBREAPER, 1);
  char folder[] = "/tmp/sy-kill-XXXXXX";
  if (::mkdtemp(folder) == nullptr) {
    std::perror(folder);
    return 1;
  }
  const absl::Cleanup remove = [&folder] {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  };
  Story story(options.trace);
  if (const Status status = Play(options, folder, story); !status.ok()) {
    std::fprintf(stderr, "kill_test: %s\n", std::string(status.message()).c_str());
    return 1;
  }
  return Report(options, story);
}
