// SPDX-License-Identifier: Apache-2.0
#pragma once

// Calls to a device plugin and how long each took. One thread.

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "k8s_deviceplugin_v1beta1.grpc.pb.h"

namespace switchyard::bench {

using Seconds = std::chrono::duration<double>;
using SteadyClock = std::chrono::steady_clock;

inline double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Latency {
  double p50 = 0;  // microseconds
  double p99 = 0;
};

inline Latency MedianOf(const std::vector<Latency>& runs) {
  std::vector<double> p50;
  std::vector<double> p99;
  for (const Latency& run : runs) {
    p50.push_back(run.p50);
    p99.push_back(run.p99);
  }
  return {Median(p50), Median(p99)};
}

// One kind of call and how long each took. A call that fails ends the program.
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
  Latency latency() {
    std::sort(times_.begin(), times_.end());
    return {times_[times_.size() / 2], times_[times_.size() * 99 / 100]};
  }

 private:
  std::function<grpc::Status()> call_;
  std::vector<double> times_;
};

using Plugin = v1beta1::DevicePlugin::Stub;

inline std::unique_ptr<Plugin> Dial(const std::string& socket) {
  return v1beta1::DevicePlugin::NewStub(
      grpc::CreateChannel("unix:" + socket, grpc::InsecureChannelCredentials()));
}

inline grpc::Status Allocate(Plugin& plugin, const std::vector<std::string>& ids) {
  grpc::ClientContext context;
  v1beta1::AllocateRequest request;
  auto* container = request.add_container_requests();
  for (const std::string& id : ids) container->add_devices_ids(id);
  v1beta1::AllocateResponse response;
  return plugin.Allocate(&context, request, &response);
}

}  // namespace switchyard::bench
