// SPDX-License-Identifier: Apache-2.0
#pragma once

// kubelet's PodResources v1 on <pod resources folder>/kubelet.sock. Start and Stop from one thread;
// a stopped server is not started again.

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "sim/kubelet/call_log.h"

namespace switchyard::sim {

struct PodDevice {
  std::string resource;
  std::string id;
  std::vector<int> numa_nodes;
};

struct PodView {
  std::string ns;
  std::string name;
  // Regular containers and sidecars, not ordinary init containers.
  std::vector<std::pair<std::string, std::vector<PodDevice>>> containers;
};

// Where the server has its answers from; called from gRPC's threads.
class PodResourcesSource {
 public:
  virtual ~PodResourcesSource() = default;
  // Active pods, also those without devices; reclaims the devices of the others before.
  virtual std::vector<PodView> ListPods() = 0;
  // Active or not; reclaims nothing.
  virtual std::optional<PodView> GetPod(const std::string& ns, const std::string& name) = 0;
  virtual std::vector<PodDevice> HealthyDevices() = 0;
};

class PodResourcesServer {
 public:
  struct Options {
    std::string folder;
    bool limit = true;  // 100 calls a second, 10 at once, of all clients together
  };
  // The references must outlive the server.
  PodResourcesServer(const Options& options, PodResourcesSource& source, Clock& clock,
                     CallLog& log);
  ~PodResourcesServer();  // stops

  [[nodiscard]] Status Start();
  void Stop();

 private:
  class Service;
  std::unique_ptr<Service> service_;
};

}  // namespace switchyard::sim
