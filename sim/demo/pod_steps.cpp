// SPDX-License-Identifier: Apache-2.0

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "sim/demo/enforce_steps.h"

namespace switchyard::sim {
namespace {

int Size(const EnforceStage& stage, int gpus) {
  return gpus == kAllGpus ? stage.node.gpus() : gpus;
}

std::string Title(char pod, int gpus) {
  return absl::StrFormat("pod %c, %d GPU%s  ", pod, gpus, gpus == 1 ? ": " : "s:");
}

int Activations(const EnforceStage& stage) { return stage.node.fm().calls()[WireCall::kActivate]; }

}  // namespace

EnforceStep Pod(char pod, int gpus) {
  return [=](EnforceStage& stage) {
    const int size = Size(stage, gpus);
    stage.Placed(pod, Title(pod, size), stage.node.AddPod(pod, size));
    return OkStatus();
  };
}

EnforceStep PodAdopts(char pod, int gpus) {
  return [=](EnforceStage& stage) {
    const std::optional<int> found = stage.judge.PartitionOf(kSomebodyElse);
    const int before = Activations(stage);
    stage.Placed(pod, Title(pod, gpus), stage.node.AddPod(pod, gpus));
    if (stage.judge.PartitionOf(pod) != found) stage.Wrong("it must get the one that was found");
    if (Activations(stage) != before) stage.Wrong("Fabric Manager was asked to activate it again");
    return OkStatus();
  };
}

EnforceStep PodIsRefused(char pod, int gpus, std::string because) {
  return [=](EnforceStage& stage) {
    const int size = Size(stage, gpus);
    stage.Refused(Title(pod, size), stage.node.AddPod(pod, size), because);
    stage.node.RemovePod(pod);
    return OkStatus();
  };
}

EnforceStep End(std::string pods) {
  return [=](EnforceStage& stage) {
    for (const char pod : pods) {
      stage.node.RemovePod(pod);
      if (stage.held.contains(pod)) {
        stage.ended.insert(pod);
      } else {
        stage.Left(pod);
      }
    }
    stage.Show(absl::StrCat(
        pods.size() == 1 ? "pod " : "pods ",
        absl::StrJoin(pods, ", ", [](std::string* text, char pod) { text->push_back(pod); }),
        pods.size() == 1 ? " is deleted" : " are deleted"));
    return OkStatus();
  };
}

EnforceStep EndTwoThatAreNoPair() {
  return [](EnforceStage& stage) -> Status {
    const auto [first, second] = NoPair(stage.node.board());
    std::string pods;
    for (const int module : {first, second}) {
      const std::optional<char> holder = stage.placement.HolderOf(module);
      if (!holder) return absl::FailedPreconditionError("a GPU that no pod has");
      pods.push_back(*holder);
    }
    return End(pods)(stage);
  };
}

EnforceStep ProcessHolds(char who) {
  return [=](EnforceStage& stage) -> Status {
    const std::set<int> modules = stage.placement.ModulesOf(who);
    if (modules.empty()) return absl::FailedPreconditionError("nothing that could be held open");
    const int module = *modules.begin();
    const PciAddress address = stage.node.sim().AddressOf(module);
    ASSIGN_OR_RETURN(const pid_t pid, stage.node.sim().Hold(address));
    stage.held[who] = address;
    stage.Show(absl::StrFormat("process %d has module %d open", pid, module));
    return OkStatus();
  };
}

EnforceStep ProcessEnds(char who) {
  return [=](EnforceStage& stage) -> Status {
    RETURN_IF_ERROR(stage.node.sim().EndHolders(stage.held.at(who)).status());
    stage.held.erase(who);
    if (stage.ended.erase(who) > 0) stage.Left(who);
    stage.Show("that process ends");
    return OkStatus();
  };
}

EnforceStep AwaitRelease() {
  return [](EnforceStage& stage) {
    const bool released = stage.node.fm().AwaitActive(stage.judge.must(), DemoNode::kPatience);
    stage.judge.Settled();
    stage.Show(released ? "its partition is deactivated" : "nothing is deactivated");
    return OkStatus();
  };
}

}  // namespace switchyard::sim
