// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "sim/demo/enforce_steps.h"

namespace switchyard::sim {
namespace {

// GPUs of pods that run.
int InUse(const EnforceStage& stage) {
  return stage.node.gpus() - static_cast<int>(stage.placement.Free().size());
}

}  // namespace

EnforceStep SomebodyElseActivates(int gpus) {
  return [=](EnforceStage& stage) -> Status {
    const std::optional<int> id = stage.placement.FreePartition(gpus);
    if (!id) return absl::FailedPreconditionError("no partition of that size is free");
    stage.node.Mark();
    if (const fmReturn code = stage.node.fm().Activate(*id); code != FM_SUCCESS) {
      return absl::InternalError(absl::StrCat("activating partition ", *id, ": ", code));
    }
    RETURN_IF_ERROR(stage.node.AwaitEvent("foreign_found").status());
    const std::vector<int>& modules = stage.node.board().FindPartition(*id)->modules;
    stage.placement.Add(kSomebodyElse, {modules.begin(), modules.end()});
    stage.judge.Has(kSomebodyElse, *id);
    stage.Show(absl::StrFormat("somebody else activates partition %d (modules %s)", *id,
                               absl::StrJoin(modules, ",")));
    return OkStatus();
  };
}

EnforceStep FabricManagerDown() {
  return [](EnforceStage& stage) -> Status {
    stage.node.Mark();
    stage.node.fm().Stop();
    RETURN_IF_ERROR(stage.node.AwaitEvent("fabric_down").status());
    const int in_use = InUse(stage);
    const Status offered = stage.node.AwaitHealthy(in_use);
    stage.Show("Fabric Manager goes down");
    if (!offered.ok()) stage.Wrong(offered.message());
    stage.Quote(absl::StrFormat(
        "kubelet has %d healthy GPUs of %d, all in use: a scheduler keeps new pods Pending", in_use,
        stage.node.gpus()));
    return OkStatus();
  };
}

EnforceStep FabricManagerUp() {
  return [](EnforceStage& stage) -> Status {
    RETURN_IF_ERROR(stage.node.fm().Start());
    const Status offered = stage.node.AwaitHealthy(stage.node.gpus());
    stage.Show("Fabric Manager is back, and all GPUs are healthy");
    if (!offered.ok()) stage.Wrong(offered.message());
    return OkStatus();
  };
}

EnforceStep FabricManagerRestartsWarm() {
  return [](EnforceStage& stage) -> Status {
    const std::set<int> must = stage.judge.must();
    stage.node.Mark();
    RETURN_IF_ERROR(stage.node.fm().Restart(FabricManager::Kind::kWarm));
    const bool restored = stage.node.fm().AwaitActive(must, DemoNode::kPatience);
    stage.Show("Fabric Manager restarts warm, and the agent tells it");
    if (!restored || stage.node.fm().routed() != must) stage.Wrong("a partition lost its NVLink");
    stage.QuoteEvent("active_list_sent");
    return OkStatus();
  };
}

EnforceStep FabricManagerRestartsCold() {
  return [](EnforceStage& stage) -> Status {
    stage.node.Mark();
    RETURN_IF_ERROR(stage.node.fm().Restart(FabricManager::Kind::kCold));
    stage.judge.Lost();
    stage.Show("Fabric Manager restarts cold");
    stage.QuoteEvent("fabric_dirty");
    return OkStatus();
  };
}

}  // namespace switchyard::sim
