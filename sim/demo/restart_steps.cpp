// SPDX-License-Identifier: Apache-2.0
#include <future>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "sim/demo/enforce_steps.h"

namespace switchyard::sim {
namespace {

// The partition that the last Allocate was about.
std::optional<int> LastAllocated(const EnforceStage& stage) {
  const std::vector<AllocateCall> calls = stage.node.kubelet().calls().allocate();
  if (calls.empty()) return std::nullopt;
  return stage.placement.PartitionOf(stage.node.ModulesOf(calls.back().ids));
}

}  // namespace

// The call is left unanswered. What Fabric Manager does about it, it does once the caller is dead.
EnforceStep AgentIsKilledActivating(char pod, int gpus, Interrupted what) {
  return [=](EnforceStage& stage) -> Status {
    FabricManager& fm = stage.node.fm();
    FabricManagerFaults faults;
    if (what == Interrupted::kCarriedOut) {
      faults.late_changes = true;
    } else {
      faults.hang = FabricManagerFaults::Hang::kActivate;
    }
    fm.SetFaults(faults);
    std::future<PodStatus> admission = std::async(
        std::launch::async, [&stage, pod, gpus] { return stage.node.AddPod(pod, gpus); });
    const bool inside = fm.AwaitHeldCall(DemoNode::kPatience);
    stage.node.KillAgent();
    const PodStatus status = admission.get();
    fm.SetFaults({});
    if (!inside) return absl::DeadlineExceededError("Fabric Manager was not asked to activate");
    const std::optional<int> partition = LastAllocated(stage);
    if (!partition) return absl::InternalError("kubelet's last Allocate was of no partition");

    std::set<int> after = stage.judge.must();
    stage.judge.MayBeActive(*partition);
    if (what == Interrupted::kCarriedOut) after.insert(*partition);
    const bool so = fm.AwaitActive(after, DemoNode::kPatience);
    stage.Refused(
        absl::StrFormat("SIGKILL while activating partition %d for pod %c: ", *partition, pod),
        status, "Allocate failed");
    stage.node.RemovePod(pod);
    return so ? OkStatus() : absl::InternalError("the call that was interrupted went otherwise");
  };
}

EnforceStep AgentStarts() {
  return [](EnforceStage& stage) -> Status {
    RETURN_IF_ERROR(stage.node.StartAgent(stage.node.gpus()));
    stage.Show("the agent starts again");
    return OkStatus();
  };
}

EnforceStep AgentReports(std::string event) {
  return [=](EnforceStage& stage) {
    stage.Show(absl::StrCat("event ", event));
    stage.QuoteEvent(event);
    return OkStatus();
  };
}

EnforceStep KubeletLosesItsCheckpoint() {
  return [](EnforceStage& stage) -> Status {
    stage.node.kubelet().Stop();
    RETURN_IF_ERROR(stage.node.kubelet().LoseCheckpoint());
    RETURN_IF_ERROR(stage.node.kubelet().Start());
    RETURN_IF_ERROR(stage.node.AwaitHealthy(stage.node.gpus()));
    stage.Show("kubelet restarts without its checkpoint");
    return OkStatus();
  };
}

EnforceStep NodeReboots(RebootNumbers numbers, int healthy_fewer) {
  return [=](EnforceStage& stage) -> Status {
    stage.node.KillAgent();
    RETURN_IF_ERROR(stage.node.sim().Reboot(numbers));
    stage.judge.Lost();
    RETURN_IF_ERROR(stage.node.StartAgent(stage.node.gpus() - healthy_fewer));
    stage.Show("the node reboots, and the agent starts");
    return OkStatus();
  };
}

EnforceStep PodStartsAgain(char pod) {
  return [=](EnforceStage& stage) -> Status {
    ASSIGN_OR_RETURN(const PodStatus status,
                     stage.node.kubelet().ReadmitPod("default", std::string(1, pod)));
    stage.Placed(pod, absl::StrFormat("kubelet starts pod %c again: ", pod), status);
    return OkStatus();
  };
}

EnforceStep PodIsRejected(char pod, std::string because) {
  return [=](EnforceStage& stage) -> Status {
    ASSIGN_OR_RETURN(const PodStatus status,
                     stage.node.kubelet().ReadmitPod("default", std::string(1, pod)));
    stage.Refused(absl::StrFormat("kubelet starts pod %c again: ", pod), status, because);
    stage.Left(pod);
    return OkStatus();
  };
}

}  // namespace switchyard::sim
