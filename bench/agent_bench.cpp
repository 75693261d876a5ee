// SPDX-License-Identifier: Apache-2.0
// agent_bench AGENT FLOOR_SERVER [CALLS]: the real agent on a simulated node, beside the floor
// server, in interleaved runs: in advise latency of GetPreferredAllocation and Allocate(2), exec to
// registered, idle memory; in enforce Allocate(2) that activates a partition, with the state on
// tmpfs, on the disk of the working folder, and with a Fabric Manager behind a socket. Each figure
// is the median of five runs; ratios are made within a run, in which the calls alternate in small
// blocks, so that whatever else the machine does hits them alike.

#include <stdlib.h>

#include <array>
#include <cstdio>
#include <filesystem>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "bench/agent_process.h"
#include "bench/calls.h"
#include "bench/enforce_node.h"
#include "sim/node/sim_node.h"
#include "sim/process/process.h"

namespace switchyard::bench {
namespace {

namespace fs = std::filesystem;
using sim::Process;

constexpr int kRuns = 5;
constexpr int kBlock = 100;        // calls of one kind in a row
constexpr int kEnforceBlock = 20;  // the same in enforce, where a round is four
constexpr int kRound = 4;
constexpr absl::Duration kPatience = absl::Seconds(60);

// Of one row of the report, a value a run.
struct Row {
  std::vector<Latency> latency;
  std::vector<double> ratio;

  void Add(const Latency& measured, const Latency& floor) {
    latency.push_back(measured);
    ratio.push_back(measured.p50 / floor.p50);
  }
};

Result<std::string> MakeFolder(std::string name) {
  if (::mkdtemp(name.data()) == nullptr) return ErrnoError(errno, name);
  return name;
}

class Bench {
 public:
  Bench(std::string agent, std::string floor, int calls)
      : agent_binary_(std::move(agent)), floor_binary_(std::move(floor)), calls_(calls) {}

  Status Run() {
    ASSIGN_OR_RETURN(folder_, MakeFolder("/dev/shm/sy-bench-XXXXXX"));  // tmpfs
    ASSIGN_OR_RETURN(disk_, MakeFolder((fs::current_path() / "sy-bench-XXXXXX").string()));
    const absl::Cleanup remove = [this] {
      std::error_code ignored;
      fs::remove_all(folder_, ignored);
      fs::remove_all(disk_, ignored);
    };
    sim::SimNodeOptions options;
    options.dir = absl::StrCat(folder_, "/node");
    ASSIGN_OR_RETURN(node_, sim::SimNode::Create(options));
    // As an operator leaves a board in advise: the pairs are active.
    RETURN_IF_ERROR(node_->fm().SetActive({3, 4, 5, 6}));
    RETURN_IF_ERROR(
        WriteFileAtomically(Config(), node_->AgentYaml({{"http.address", "\"127.0.0.1:0\""}})));
    const std::string instant =
        (fs::path(agent_binary_).parent_path().parent_path() / "lib/libnvfm-instant.so.1").string();
    const std::array<EnforceNodeOptions, 3> nodes = {
        {{folder_ + "/e1", folder_ + "/e1-state", fs::absolute(instant)},
         {folder_ + "/e2", disk_, fs::absolute(instant)},
         {folder_ + "/e3", folder_ + "/e3-state", ""}}};
    for (size_t i = 0; i < nodes.size(); ++i) {
      ASSIGN_OR_RETURN(enforcing_[i], EnforceNode::Create(nodes[i]));
    }
    for (int run = 0; run < kRuns; ++run) {
      ASSIGN_OR_RETURN(const std::unique_ptr<Process> floor, StartFloor());
      RETURN_IF_ERROR(Advise());
      RETURN_IF_ERROR(Enforce());
    }
    Report();
    return OkStatus();
  }

 private:
  std::string Config() const { return absl::StrCat(folder_, "/agent.yaml"); }
  std::string FloorSocket() const { return absl::StrCat(folder_, "/floor.sock"); }
  std::vector<std::string> Pair() const {
    return {node_->AddressOf(1).ToString(), node_->AddressOf(3).ToString()};
  }

  Result<std::unique_ptr<Process>> StartFloor() {
    const auto start = SteadyClock::now();
    ASSIGN_OR_RETURN(std::unique_ptr<Process> floor,
                     Process::Start({floor_binary_, FloorSocket()}));
    if (!floor->WaitForLine("listening", kPatience)) return absl::InternalError("no floor server");
    floor_start_.push_back(Seconds(SteadyClock::now() - start).count() * 1e3);
    return floor;
  }

  Status Advise() {
    ASSIGN_OR_RETURN(const AgentProcess agent, StartAgent(agent_binary_, Config(), *node_));
    agent_start_.push_back(agent.seconds * 1e3);
    start_ratio_.push_back(agent_start_.back() / floor_start_.back());
    advise_pss_.push_back(PssWithChildren(agent.process->pid()));

    const auto plugin = Dial(PluginSocket(*node_));
    const auto floor = Dial(FloorSocket());
    Caller floor_calls([&] { return Allocate(*floor, Pair()); });
    Caller prefer_calls([&] { return Prefer(*plugin); });
    Caller allocate_calls([&] { return Allocate(*plugin, Pair()); });
    for (int done = -kBlock; done < calls_; done += kBlock) {
      for (Caller* caller : {&floor_calls, &prefer_calls, &allocate_calls}) {
        caller->Call(kBlock);
        if (done < 0) caller->Forget();
      }
    }
    const Latency least = floor_calls.latency();
    floor_.push_back(least);
    prefer_.Add(prefer_calls.latency(), least);
    allocate_.Add(allocate_calls.latency(), least);
    if (agent.process->Stop() != 0) return absl::InternalError("the agent did not stop cleanly");
    return OkStatus();
  }

  grpc::Status Prefer(Plugin& plugin) const {
    grpc::ClientContext context;
    v1beta1::PreferredAllocationRequest request;
    auto* container = request.add_container_requests();
    for (const sim::BoardDevice& device : node_->board().devices)
      container->add_available_deviceids(device.address.ToString());
    container->set_allocation_size(2);
    v1beta1::PreferredAllocationResponse response;
    return plugin.GetPreferredAllocation(&context, request, &response);
  }

  Status Enforce() {
    const auto floor = Dial(FloorSocket());
    Caller floor_calls([&] { return Allocate(*floor, Pair()); });
    RETURN_IF_ERROR(enforcing_[0]->Start(agent_binary_));
    enforce_pss_.push_back(enforcing_[0]->pss());  // before others share its pages
    RETURN_IF_ERROR(enforcing_[1]->Start(agent_binary_));
    RETURN_IF_ERROR(enforcing_[2]->Start(agent_binary_));
    floor_calls.Call(kEnforceBlock);
    floor_calls.Forget();
    for (const auto& node : enforcing_) node->WarmUp(kEnforceBlock / kRound);
    // Dearer than the others, so fewer.
    for (int done = 0; done < calls_ / 4; done += kEnforceBlock) {
      floor_calls.Call(kEnforceBlock);
      for (const auto& node : enforcing_) {
        for (int i = 0; i < kEnforceBlock / kRound; ++i) node->Round();
      }
    }
    const Latency least = floor_calls.latency();
    enforce_floor_.push_back(least);
    for (size_t i = 0; i < enforcing_.size(); ++i) {
      enforce_[i].Add(enforcing_[i]->latency(), least);
      RETURN_IF_ERROR(enforcing_[i]->Stop());
    }
    const double tmpfs = enforce_[0].latency.back().p50;
    const double disk = enforce_[1].latency.back().p50;
    fsync_share_.push_back((disk - tmpfs) / disk);
    return OkStatus();
  }

  static void Print(const char* what, const std::vector<Latency>& floor, const Row& row,
                    const char* target) {
    const Latency least = MedianOf(floor);
    const Latency measured = MedianOf(row.latency);
    std::printf("| %s p50 | %.0f us | %.0f us | %.2f | %s |\n", what, least.p50, measured.p50,
                Median(row.ratio), target);
    std::printf("| %s p99 | %.0f us | %.0f us | | |\n", what, least.p99, measured.p99);
  }

  void Report() const {
    std::printf("median of %d interleaved runs, %d calls each, in enforce %d\n", kRuns, calls_,
                calls_ / 4);
    std::printf("| what | floor | agent | ratio | target |\n| --- | --- | --- | --- | --- |\n");
    Print("GetPreferredAllocation", floor_, prefer_, "1.6");
    Print("Allocate(2)", floor_, allocate_, "1.6");
    Print("Allocate(2), enforce, state on tmpfs", enforce_floor_, enforce_[0], "2.5");
    Print("Allocate(2), enforce, state on disk", enforce_floor_, enforce_[1], "");
    std::printf("| of it the disk's share, p50 | | %.0f %% | | |\n", Median(fsync_share_) * 100);
    Print("Allocate(2), enforce, simulated Fabric Manager", enforce_floor_, enforce_[2], "");
    std::printf("| exec to listening / registered | %.1f ms | %.1f ms | %.2f | 3 |\n",
                Median(floor_start_), Median(agent_start_), Median(start_ratio_));
    std::printf("| idle memory, agent and helper (sum of PSS) | | %.1f MB | | 14 MB |\n",
                Median(advise_pss_) / 1e6);
    std::printf("| the same in enforce | | %.1f MB | | 16 MB |\n", Median(enforce_pss_) / 1e6);
    std::printf("| stripped binary | | %.1f MB | | 14 MB |\n",
                static_cast<double>(fs::file_size(agent_binary_)) / 1e6);
  }

  const std::string agent_binary_;
  const std::string floor_binary_;
  const int calls_;
  std::string folder_;
  std::string disk_;
  std::unique_ptr<sim::SimNode> node_;
  std::array<std::unique_ptr<EnforceNode>, 3> enforcing_;
  std::vector<Latency> floor_, enforce_floor_;
  Row prefer_, allocate_;
  std::array<Row, 3> enforce_;
  std::vector<double> fsync_share_, start_ratio_, floor_start_, agent_start_, advise_pss_,
      enforce_pss_;
};

}  // namespace
}  // namespace switchyard::bench

int main(int argc, char** argv) {
  int calls = 5000;
  if (argc < 3 || argc > 4 || (argc == 4 && !absl::SimpleAtoi(argv[3], &calls))) {
    std::fprintf(stderr, "usage: agent_bench AGENT FLOOR_SERVER [CALLS]\n");
    return 2;
  }
  const switchyard::Status status = switchyard::bench::Bench(argv[1], argv[2], calls).Run();
  if (!status.ok())
    std::fprintf(stderr, "agent_bench: %s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
