// SPDX-License-Identifier: Apache-2.0
#include "sim/demo/enforce_play.h"

#include <memory>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "sim/demo/enforce_stage.h"

namespace switchyard::sim {
namespace {

constexpr int kAtOnce = 4;

Status PlaySteps(DemoNode& node, const EnforceScenario& scenario, std::ostream& out, int& wrong) {
  RETURN_IF_ERROR(node.StartAgent(node.gpus()));
  EnforceStage stage(node, out);
  for (const EnforceStep& step : scenario.steps) {
    const Status done = step(stage);
    wrong = stage.wrong;
    RETURN_IF_ERROR(done);
  }
  out << "   " << stage.placement.Picture() << "\n";
  if (const Status sound = node.RunCommand({"journal", "verify"}); !sound.ok()) {
    stage.Wrong(absl::StrCat("switchyard journal verify: ", sound.message()));
  }
  wrong = stage.wrong;
  return node.StopAgent();
}

EnforcePlayed PlayOne(const DemoOptions& options, const EnforceScenario& scenario, int number) {
  std::ostringstream out;
  out << absl::StrFormat("\n%d. %s\n", number, scenario.title);
  if (!scenario.remark.empty()) out << Wrapped(absl::StrCat("(", scenario.remark, ")"), 3);
  EnforcePlayed played;
  YamlOverrides config = scenario.config;
  config["fabric.mode"] = "enforce";
  Result<std::unique_ptr<DemoNode>> node =
      DemoNode::Create({options.agent, options.board, options.seed, std::move(config)});
  played.status = node.ok() ? PlaySteps(**node, scenario, out, played.wrong) : node.status();
  if (!played.status.ok()) {
    out << "   " << played.status.message() << "\n";
    if (node.ok()) out << "\nthe agent's log:\n" << (*node)->AgentLog() << "\n";
  }
  played.text = out.str();
  return played;
}

}  // namespace

EnforcePlay::EnforcePlay(DemoOptions options, std::vector<EnforceScenario> scenarios,
                         int first_number)
    : options_(std::move(options)),
      scenarios_(std::move(scenarios)),
      first_number_(first_number),
      played_(scenarios_.size()) {
  for (int i = 0; i < kAtOnce; ++i) {
    workers_.push_back(std::async(std::launch::async, [this] { Work(); }));
  }
}

EnforcePlay::~EnforcePlay() { begun_ = scenarios_.size(); }

void EnforcePlay::Work() {
  for (size_t i = begun_++; i < scenarios_.size(); i = begun_++) {
    played_[i].set_value(PlayOne(options_, scenarios_[i], first_number_ + static_cast<int>(i)));
  }
}

}  // namespace switchyard::sim
