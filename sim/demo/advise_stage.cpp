// SPDX-License-Identifier: Apache-2.0
#include "sim/demo/advise_stage.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace switchyard::sim {
namespace {

// One placed pod, in words: "modules 1,3 = partition 3".
std::string Describe(const Placement& board, const std::set<int>& modules, bool wrong) {
  return absl::StrCat(board.Describe(modules), wrong ? "  WRONG" : "");
}

}  // namespace

Status AdviseStage::Play(const AdviseScenario& scenario, int number) {
  out_ << absl::StrFormat("\n%d. %s\n", number, scenario.title);
  if (!scenario.remark.empty()) out_ << "   (" << scenario.remark << ")\n";
  for (const AdviseStep& step : scenario.steps) {
    switch (step.kind) {
      case AdviseStep::Kind::kAddPod:
        AddPod(step.pod, step.gpus);
        break;
      case AdviseStep::Kind::kRemovePod:
        RemoveHolderOfNoPair(step.pod);
        break;
      case AdviseStep::Kind::kFabricManagerDown:
        RETURN_IF_ERROR(FabricManagerDown());
        break;
      case AdviseStep::Kind::kFabricManagerUp:
        RETURN_IF_ERROR(FabricManagerUp());
        break;
    }
  }
  out_ << "   Switchyard  " << ours_.Picture() << "\n   count-only  " << counting_.Picture()
       << "\n";
  Clear();
  return OkStatus();
}

void AdviseStage::AddPod(char pod, int gpus) {
  const bool could = ours_.FreePartition(gpus).has_value();
  const PodStatus status = node_.AddPod(pod, gpus);
  const std::set<int> modules = node_.ModulesOf(status);
  const bool wrong = could && !ours_.PartitionOf(modules);
  wrong_ += wrong ? 1 : 0;
  ours_.Add(pod, modules);

  const bool counting_could = counting_.FreePartition(gpus).has_value();
  const std::set<int> counted = CountOnly(node_.board(), counting_.Free(), gpus);
  const bool counting_wrong = counting_could && !counting_.PartitionOf(counted);
  counting_wrong_ += counting_wrong ? 1 : 0;
  counting_.Add(pod, counted);

  out_ << absl::StrFormat("   pod %c, %d GPU%s  Switchyard: %-34s count-only: %s\n", pod, gpus,
                          gpus == 1 ? ": " : "s:", Describe(ours_, modules, wrong),
                          Describe(counting_, counted, counting_wrong));
  if (!status.admitted) out_ << "      " << status.reason << ": " << status.message << "\n";
}

// '1' and '2': the pods on the first and the second of two modules that are no pair.
void AdviseStage::RemoveHolderOfNoPair(char which) {
  const std::pair<int, int> modules = NoPair(node_.board());
  const int module = which == '1' ? modules.first : modules.second;
  const std::optional<char> ours = ours_.HolderOf(module);
  const std::optional<char> counting = counting_.HolderOf(module);
  out_ << absl::StrFormat("   the pod on module %d ends\n", module);
  if (ours) Remove(*ours);
  if (counting) counting_.Remove(*counting);
}

void AdviseStage::Remove(char pod) {
  node_.RemovePod(pod);
  ours_.Remove(pod);
}

Status AdviseStage::FabricManagerDown() {
  node_.Mark();
  node_.fm().Stop();
  RETURN_IF_ERROR(node_.AwaitEvent("fabric_down").status());
  out_ << "   Fabric Manager is down, and the agent has noticed\n";
  return OkStatus();
}

Status AdviseStage::FabricManagerUp() {
  node_.Mark();
  RETURN_IF_ERROR(node_.fm().Start());
  RETURN_IF_ERROR(node_.AwaitEvent("fabric_up").status());
  out_ << "   Fabric Manager is up, and the agent has noticed\n";
  return OkStatus();
}

void AdviseStage::Clear() {
  for (const PodReport& pod : node_.kubelet().Pods()) {
    (void)node_.kubelet().RemovePod(pod.ns, pod.name);
  }
  ours_ = Placement(node_.board());
  counting_ = Placement(node_.board());
}

}  // namespace switchyard::sim
