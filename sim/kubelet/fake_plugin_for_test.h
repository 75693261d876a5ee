// SPDX-License-Identifier: Apache-2.0
#pragma once

// A device plugin of a few lines, served in the test's process. What it answers is the test's.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "sim/kubelet/endpoint.h"

namespace switchyard::sim {

class FakePlugin {
 public:
  struct Behaviour {
    bool preferred_available = true;
    // Null: no container response at all.
    std::function<Result<std::vector<std::string>>(const PreferredRequest&)> prefer = {};
    // Null: an empty container response.
    std::function<Result<std::optional<AllocateAnswer>>(const std::vector<std::string>&)> allocate =
        {};
    bool pre_start_required = false;
    // Null: fine.
    std::function<Status(const std::vector<std::string>&)> pre_start = {};
  };

  // Serves on <folder>/<socket_name>.
  FakePlugin(std::string folder, std::string socket_name, Behaviour behaviour);
  ~FakePlugin();  // stops

  // Calls kubelet's Register; the error's code is gRPC's.
  [[nodiscard]] Status Register(const std::string& resource,
                                const std::string& version = "v1beta1") const;
  // What every stream sends, now and first of all when it opens. Nothing before the first call.
  void Send(std::vector<PluginDevice> snapshot);
  void EndStreams();  // those open now
  void Stop();

  [[nodiscard]] std::string authority() const;  // of the last call

 private:
  class Service;
  std::unique_ptr<Service> service_;
};

// "a".."h"-like devices, all healthy, without topology.
[[nodiscard]] std::vector<PluginDevice> HealthyDevices(const std::vector<std::string>& ids);

}  // namespace switchyard::sim
