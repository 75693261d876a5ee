// SPDX-License-Identifier: Apache-2.0
// agent_bench AGENT FLOOR_SERVER [CALLS]: the real agent on a simulated node, beside the floor
// server, in interleaved runs: latency of GetPreferredAllocation and Allocate(2), exec to
// registered, idle memory. Each figure is the median of five runs; ratios are made within a run, in
// which the calls alternate in small blocks, so that whatever else the machine does hits them
// alike.

#include <grpcpp/grpcpp.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "k8s_deviceplugin_v1beta1.grpc.pb.h"
#include "sim/node/sim_node.h"
#include "sim/process/process.h"

namespace switchyard::sim {
namespace {

using Seconds = std::chrono::duration<double>;
using SteadyClock = std::chrono::steady_clock;

constexpr int kRuns = 5;
constexpr int kBlock = 100;  // calls of one kind in a row
constexpr absl::Duration kPatience = absl::Seconds(60);

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Latency {
  double p50 = 0;  // microseconds
  double p99 = 0;
};

// One kind of call and how long each took, in microseconds.
class Caller {
 public:
  explicit Caller(std::function<grpc::Status()> call) : call_(std::move(call)) {}

  void Call(int times) {
    for (int i = 0; i < times; ++i) {
      const auto start = SteadyClock::now();
      const grpc::Status status = call_();
      times_.push_back(Seconds(SteadyClock::now() - start).count() * 1e6);
      if (!status.ok()) {
        std::cerr << "the call failed: " << status.error_message() << "\n";
        std::exit(1);
      }
    }
  }
  void Forget() { times_.clear(); }  // what only warmed up
  Latency Result() {
    std::sort(times_.begin(), times_.end());
    return {times_[times_.size() / 2], times_[times_.size() * 99 / 100]};
  }

 private:
  std::function<grpc::Status()> call_;
  std::vector<double> times_;
};

// Proportional set size of a process in KiB.
double Pss(pid_t pid) {
  std::ifstream rollup(absl::StrCat("/proc/", pid, "/smaps_rollup"));
  for (std::string line; std::getline(rollup, line);) {
    double kib = 0;
    if (std::sscanf(line.c_str(), "Pss: %lf kB", &kib) == 1) return kib;
  }
  return 0;
}

std::vector<pid_t> Children(pid_t pid) {
  std::vector<pid_t> children;
  for (const auto& task :
       std::filesystem::directory_iterator(absl::StrCat("/proc/", pid, "/task"))) {
    std::ifstream list(task.path() / "children");
    for (pid_t child; list >> child;) children.push_back(child);
  }
  return children;
}

class Bench {
 public:
  Bench(std::string agent, std::string floor, int calls)
      : agent_binary_(std::move(agent)), floor_binary_(std::move(floor)), calls_(calls) {}

  Status Run() {
    char folder[] = "/dev/shm/sy-bench-XXXXXX";  // tmpfs
    if (::mkdtemp(folder) == nullptr) return ErrnoError(errno, folder);
    const absl::Cleanup remove = [&folder] {
      std::error_code ignored;
      std::filesystem::remove_all(folder, ignored);
    };
    folder_ = folder;
    SimNodeOptions options;
    options.dir = absl::StrCat(folder_, "/node");
    ASSIGN_OR_RETURN(node_, SimNode::Create(options));
    // As an operator leaves a board in advise: the pairs are active.
    RETURN_IF_ERROR(node_->fm().SetActive({3, 4, 5, 6}));
    RETURN_IF_ERROR(
        WriteFileAtomically(Config(), node_->AgentYaml({{"http.address", "\"127.0.0.1:0\""}})));
    for (int run = 0; run < kRuns; ++run) RETURN_IF_ERROR(OneRun());
    Report();
    return OkStatus();
  }

 private:
  std::string Config() const { return absl::StrCat(folder_, "/agent.yaml"); }

  Status OneRun() {
    const std::string floor_socket = absl::StrCat(folder_, "/floor.sock");
    auto start = SteadyClock::now();
    ASSIGN_OR_RETURN(const std::unique_ptr<Process> floor,
                     Process::Start({floor_binary_, floor_socket}));
    if (!floor->WaitForLine("listening", kPatience)) return absl::InternalError("no floor server");
    const double floor_start = Seconds(SteadyClock::now() - start).count();

    start = SteadyClock::now();
    ASSIGN_OR_RETURN(const std::unique_ptr<Process> agent,
                     Process::Start({agent_binary_, "agent", "--config", Config()}));
    const bool registered = node_->kubelet().WaitFor(
        [this] {
          const auto resources = node_->kubelet().Resources();
          return !resources.empty() && resources.begin()->second.connected &&
                 resources.begin()->second.allocatable > 0;
        },
        kPatience);
    const double agent_start = Seconds(SteadyClock::now() - start).count();
    if (!registered || !agent->WaitForLine("event=fabric_up", kPatience)) {
      std::cerr << agent->Output() << "\n";
      return absl::InternalError("the agent did not come up");
    }
    start_ratio_.push_back(agent_start / floor_start);
    floor_start_.push_back(floor_start * 1e3);
    agent_start_.push_back(agent_start * 1e3);

    double pss = Pss(agent->pid());
    for (const pid_t child : Children(agent->pid())) pss += Pss(child);
    pss_mb_.push_back(pss * 1024 / 1e6);

    const auto agent_stub = Stub(AgentSocket());
    const auto floor_stub = Stub(floor_socket);
    const auto allocate = [this](v1beta1::DevicePlugin::Stub& stub) {
      grpc::ClientContext context;
      v1beta1::AllocateRequest request;
      auto* container = request.add_container_requests();
      container->add_devices_ids(node_->AddressOf(1).ToString());
      container->add_devices_ids(node_->AddressOf(3).ToString());
      v1beta1::AllocateResponse response;
      return stub.Allocate(&context, request, &response);
    };
    const auto prefer = [this](v1beta1::DevicePlugin::Stub& stub) {
      grpc::ClientContext context;
      v1beta1::PreferredAllocationRequest request;
      auto* container = request.add_container_requests();
      for (const BoardDevice& device : node_->board().devices) {
        container->add_available_deviceids(device.address.ToString());
      }
      container->set_allocation_size(2);
      v1beta1::PreferredAllocationResponse response;
      return stub.GetPreferredAllocation(&context, request, &response);
    };
    Caller floor_calls([&] { return allocate(*floor_stub); });
    Caller prefer_calls([&] { return prefer(*agent_stub); });
    Caller allocate_calls([&] { return allocate(*agent_stub); });
    for (int done = -kBlock; done < calls_; done += kBlock) {
      for (Caller* caller : {&floor_calls, &prefer_calls, &allocate_calls}) {
        caller->Call(kBlock);
        if (done < 0) caller->Forget();
      }
    }
    const Latency floor_latency = floor_calls.Result();
    const Latency prefer_latency = prefer_calls.Result();
    const Latency allocate_latency = allocate_calls.Result();
    floor_.push_back(floor_latency);
    prefer_.push_back(prefer_latency);
    allocate_.push_back(allocate_latency);
    prefer_ratio_.push_back(prefer_latency.p50 / floor_latency.p50);
    allocate_ratio_.push_back(allocate_latency.p50 / floor_latency.p50);

    if (agent->Stop() != 0) return absl::InternalError("the agent did not stop cleanly");
    return OkStatus();
  }

  std::string AgentSocket() const {
    for (const auto& entry : std::filesystem::directory_iterator(node_->paths().device_plugins())) {
      const std::string name = entry.path().filename();
      if (name.rfind("switchyard-", 0) == 0) return entry.path();
    }
    return "";
  }

  static std::unique_ptr<v1beta1::DevicePlugin::Stub> Stub(const std::string& socket) {
    return v1beta1::DevicePlugin::NewStub(
        grpc::CreateChannel("unix:" + socket, grpc::InsecureChannelCredentials()));
  }

  static Latency MedianOf(const std::vector<Latency>& runs) {
    std::vector<double> p50;
    std::vector<double> p99;
    for (const Latency& run : runs) {
      p50.push_back(run.p50);
      p99.push_back(run.p99);
    }
    return {Median(p50), Median(p99)};
  }

  void Report() const {
    const Latency floor = MedianOf(floor_);
    const Latency prefer = MedianOf(prefer_);
    const Latency allocate = MedianOf(allocate_);
    std::printf("median of %d interleaved runs, %d calls each\n", kRuns, calls_);
    std::printf("| what | floor | agent | ratio | target |\n| --- | --- | --- | --- | --- |\n");
    std::printf("| GetPreferredAllocation p50 | %.0f us | %.0f us | %.2f | 1.6 |\n", floor.p50,
                prefer.p50, Median(prefer_ratio_));
    std::printf("| GetPreferredAllocation p99 | %.0f us | %.0f us | | |\n", floor.p99, prefer.p99);
    std::printf("| Allocate(2) p50 | %.0f us | %.0f us | %.2f | 1.6 |\n", floor.p50, allocate.p50,
                Median(allocate_ratio_));
    std::printf("| Allocate(2) p99 | %.0f us | %.0f us | | |\n", floor.p99, allocate.p99);
    std::printf("| exec to listening / registered | %.1f ms | %.1f ms | %.2f | 3 |\n",
                Median(floor_start_), Median(agent_start_), Median(start_ratio_));
    std::printf("| idle memory, agent and helper (sum of PSS) | | %.1f MB | | 14 MB |\n",
                Median(pss_mb_));
    std::printf("| stripped binary | | %.1f MB | | 14 MB |\n",
                static_cast<double>(std::filesystem::file_size(agent_binary_)) / 1e6);
  }

  const std::string agent_binary_;
  const std::string floor_binary_;
  const int calls_;
  std::string folder_;
  std::unique_ptr<SimNode> node_;
  std::vector<Latency> floor_, prefer_, allocate_;
  std::vector<double> prefer_ratio_, allocate_ratio_, start_ratio_, floor_start_, agent_start_,
      pss_mb_;
};

}  // namespace
}  // namespace switchyard::sim

int main(int argc, char** argv) {
  int calls = 5000;
  if (argc < 3 || argc > 4 || (argc == 4 && !absl::SimpleAtoi(argv[3], &calls))) {
    std::fprintf(stderr, "usage: agent_bench AGENT FLOOR_SERVER [CALLS]\n");
    return 2;
  }
  const switchyard::Status status = switchyard::sim::Bench(argv[1], argv[2], calls).Run();
  if (!status.ok())
    std::fprintf(stderr, "agent_bench: %s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
