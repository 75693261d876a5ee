// SPDX-License-Identifier: Apache-2.0
#include "sim/demo/demo.h"

#include <stdlib.h>

#include <filesystem>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/files.h"
#include "sim/demo/placement.h"
#include "sim/demo/scenarios.h"
#include "sim/node/sim_node.h"
#include "sim/process/process.h"

namespace switchyard::sim {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);

// One placed pod, in words: "modules 1,3 = partition 3".
std::string Describe(const Placement& board, const std::set<int>& modules, bool wrong) {
  if (modules.empty()) return wrong ? "not placed  WRONG" : "not placed";
  const std::optional<int> partition = board.PartitionOf(modules);
  return absl::StrCat("modules ", absl::StrJoin(modules, ","), " = ",
                      partition ? absl::StrCat("partition ", *partition) : "no partition",
                      wrong ? "  WRONG" : "");
}

class Demo {
 public:
  Demo(SimNode& node, Process& agent, std::ostream& out)
      : node_(node), agent_(agent), out_(out), ours_(node.board()), counting_(node.board()) {}

  Status WaitUntilReady() {
    const bool registered = node_.kubelet().WaitFor(
        [this] {
          const auto resources = node_.kubelet().Resources();
          return resources.size() == 1 && resources.begin()->second.allocatable ==
                                              static_cast<int>(node_.board().devices.size());
        },
        kPatience);
    if (!registered) return absl::DeadlineExceededError("the agent did not register its GPUs");
    resource_ = node_.kubelet().Resources().begin()->first;
    if (!agent_.WaitForLine("event=fabric_up", kPatience)) {
      return absl::DeadlineExceededError("the agent did not read Fabric Manager's table");
    }
    return OkStatus();
  }

  Status Play(const DemoScenario& scenario, int number) {
    out_ << absl::StrFormat("\n%d. %s\n", number, scenario.title);
    if (!scenario.remark.empty()) out_ << "   (" << scenario.remark << ")\n";
    for (const DemoStep& step : scenario.steps) {
      switch (step.kind) {
        case DemoStep::Kind::kAddPod:
          RETURN_IF_ERROR(AddPod(step.pod, step.gpus));
          break;
        case DemoStep::Kind::kRemovePod:
          RemoveHolderOfNoPair(step.pod);
          break;
        case DemoStep::Kind::kFabricManagerDown:
          RETURN_IF_ERROR(FabricManagerDown());
          break;
        case DemoStep::Kind::kFabricManagerUp:
          RETURN_IF_ERROR(FabricManagerUp());
          break;
      }
    }
    out_ << "   Switchyard  " << ours_.Picture() << "\n   count-only  " << counting_.Picture()
         << "\n";
    Clear();
    return OkStatus();
  }

  [[nodiscard]] int wrong() const { return wrong_; }
  [[nodiscard]] int counting_wrong() const { return counting_wrong_; }

 private:
  Status AddPod(char pod, int gpus) {
    const bool could = ours_.FreePartition(gpus).has_value();
    PodSpec spec;
    spec.name = std::string(1, pod);
    spec.containers.push_back({"compute", false, false, {{resource_, gpus}}});
    const PodStatus status = node_.kubelet().AddPod(spec);
    std::set<int> modules;
    if (status.admitted) {
      ASSIGN_OR_RETURN(modules, ModulesOf(status.containers[0].devices.at(resource_)));
    }
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
    return OkStatus();
  }

  Result<std::set<int>> ModulesOf(const std::vector<std::string>& ids) const {
    std::set<int> modules;
    for (const std::string& id : ids) {
      ASSIGN_OR_RETURN(const PciAddress address, PciAddress::Parse(id));
      for (const BoardDevice& device : node_.board().devices) {
        if (device.address == address) modules.insert(device.module);
      }
    }
    return modules;
  }

  // '1' and '2': the pods on the first and the second of two modules that are no pair.
  void RemoveHolderOfNoPair(char which) {
    const std::pair<int, int> modules = NoPair(node_.board());
    const int module = which == '1' ? modules.first : modules.second;
    const std::optional<char> ours = ours_.HolderOf(module);
    const std::optional<char> counting = counting_.HolderOf(module);
    out_ << absl::StrFormat("   the pod on module %d ends\n", module);
    if (ours) Remove(*ours);
    if (counting) counting_.Remove(*counting);
  }

  void Remove(char pod) {
    (void)node_.kubelet().RemovePod("default", std::string(1, pod));
    ours_.Remove(pod);
  }

  Status FabricManagerDown() {
    agent_.Mark();
    node_.fm().Stop();
    if (!agent_.WaitForLine("event=fabric_down", kPatience)) {
      return absl::DeadlineExceededError("the agent did not notice that Fabric Manager is down");
    }
    out_ << "   Fabric Manager is down, and the agent has noticed\n";
    return OkStatus();
  }

  Status FabricManagerUp() {
    agent_.Mark();
    RETURN_IF_ERROR(node_.fm().Start());
    if (!agent_.WaitForLine("event=fabric_up", kPatience)) {
      return absl::DeadlineExceededError("the agent did not notice that Fabric Manager is back");
    }
    out_ << "   Fabric Manager is up, and the agent has noticed\n";
    return OkStatus();
  }

  void Clear() {
    for (const PodReport& pod : node_.kubelet().Pods()) {
      (void)node_.kubelet().RemovePod(pod.ns, pod.name);
    }
    ours_ = Placement(node_.board());
    counting_ = Placement(node_.board());
  }

  SimNode& node_;
  Process& agent_;
  std::ostream& out_;
  std::string resource_;
  Placement ours_;
  Placement counting_;
  int wrong_ = 0;
  int counting_wrong_ = 0;
};

Result<int> PlayAll(SimNode& node, Process& agent, std::ostream& out) {
  Demo demo(node, agent, out);
  RETURN_IF_ERROR(demo.WaitUntilReady());
  out << "the agent has registered " << node.board().devices.size()
      << " GPUs with kubelet and read Fabric Manager's table\n"
      << "pictures: [ ] is a pair, | parts the quads, 3a is module 3 held by pod a, . is free\n";
  const std::vector<DemoScenario> scenarios = DemoScenarios(node.board());
  int number = 0;
  for (const DemoScenario& scenario : scenarios) RETURN_IF_ERROR(demo.Play(scenario, ++number));
  const std::optional<int> code = agent.Stop();
  if (code != 0) return absl::InternalError("the agent did not stop cleanly");
  out << absl::StrFormat("\ncount-only: %d pods wrong\ndemo: %d scenarios, %d wrong\n",
                         demo.counting_wrong(), scenarios.size(), demo.wrong());
  return demo.wrong();
}

}  // namespace

Result<int> RunDemo(const DemoOptions& options, std::ostream& out) {
  char folder[] = "/tmp/switchyard-demo-XXXXXX";
  if (::mkdtemp(folder) == nullptr) return ErrnoError(errno, folder);
  const absl::Cleanup remove = [&folder] {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  };
  out << "a simulated node with a board " << options.board << " comes up in " << folder << "\n";
  SimNodeOptions node_options;
  node_options.dir = folder;
  node_options.board = options.board;
  node_options.seed = options.seed;
  ASSIGN_OR_RETURN(const std::unique_ptr<SimNode> node, SimNode::Create(node_options));
  if (node->board().devices.size() < 8) {
    return absl::InvalidArgumentError("the demo needs a board of 8 GPUs or more");
  }
  const std::string config = absl::StrCat(folder, "/demo.yaml");
  RETURN_IF_ERROR(WriteFileAtomically(
      config,
      node->AgentYaml({{"fabric.probeInterval", "500ms"}, {"http.address", "\"127.0.0.1:0\""}})));
  ASSIGN_OR_RETURN(const std::unique_ptr<Process> agent,
                   Process::Start({options.agent, "agent", "--config", config}));
  Result<int> wrong = PlayAll(*node, *agent, out);
  if (!wrong.ok()) out << "\nthe agent's log:\n" << agent->Output() << "\n";
  return wrong;
}

}  // namespace switchyard::sim
