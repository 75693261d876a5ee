// SPDX-License-Identifier: Apache-2.0
#include "sim/demo/demo.h"

#include <memory>

#include "absl/strings/str_format.h"
#include "sim/demo/advise_scenarios.h"
#include "sim/demo/advise_stage.h"
#include "sim/demo/demo_node.h"
#include "sim/demo/enforce_play.h"

namespace switchyard::sim {
namespace {

Result<int> PlayAdvise(DemoNode& node, const std::vector<AdviseScenario>& scenarios,
                       std::ostream& out) {
  out << "a simulated node with a board " << node.board().name << " comes up in " << node.folder()
      << "\n";
  RETURN_IF_ERROR(node.StartAgent(node.gpus()));
  out << "the agent has registered " << node.gpus()
      << " GPUs with kubelet and read Fabric Manager's table\n";
  AdviseStage stage(node, out);
  int number = 0;
  for (const AdviseScenario& scenario : scenarios) RETURN_IF_ERROR(stage.Play(scenario, ++number));
  RETURN_IF_ERROR(node.StopAgent());
  out << absl::StrFormat("\ncount-only: %d pods wrong\n", stage.counting_wrong());
  return stage.wrong();
}

Result<int> PrintEnforce(EnforcePlay& play, std::ostream& out) {
  out << "\nfabric.mode enforce, each scenario on a node of its own. After every step Fabric "
         "Manager "
         "is asked\nwhat is active: one partition for each who has GPUs, and nothing else but what "
         "was left a moment\nago. At the end comes switchyard journal verify. * is what somebody "
         "else "
         "activated.\n";
  int wrong = 0;
  for (size_t i = 0; i < play.size(); ++i) {
    const EnforcePlayed played = play.Next();
    out << played.text << std::flush;
    RETURN_IF_ERROR(played.status);
    wrong += played.wrong;
  }
  return wrong;
}

}  // namespace

Result<int> RunDemo(const DemoOptions& options, std::ostream& out) {
  ASSIGN_OR_RETURN(const Board board, LoadBoard(options.board, "", options.seed));
  std::vector<AdviseScenario> advise;
  std::vector<EnforceScenario> enforce;
  if (options.only != "enforce") advise = AdviseScenarios(board);
  if (options.only != "advise") enforce = EnforceScenarios(board);
  const size_t count = advise.size() + enforce.size();
  EnforcePlay play(options, std::move(enforce), static_cast<int>(advise.size()) + 1);

  out << "pictures: [ ] is a pair, | parts the quads, 3a is module 3 held by pod a, . is free\n";
  int wrong = 0;
  if (!advise.empty()) {
    ASSIGN_OR_RETURN(const std::unique_ptr<DemoNode> node,
                     DemoNode::Create({options.agent, options.board, options.seed}));
    const Result<int> of_advise = PlayAdvise(*node, advise, out);
    if (!of_advise.ok()) out << "\nthe agent's log:\n" << node->AgentLog() << "\n";
    RETURN_IF_ERROR(of_advise.status());
    wrong += *of_advise;
  }
  if (play.size() > 0) {
    ASSIGN_OR_RETURN(const int of_enforce, PrintEnforce(play, out));
    wrong += of_enforce;
  }
  out << absl::StrFormat("\ndemo: %d scenarios, %d wrong\n", count, wrong);
  return wrong;
}

}  // namespace switchyard::sim
