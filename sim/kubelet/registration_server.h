// SPDX-License-Identifier: Apache-2.0
#pragma once

// kubelet's Registration service on <device plugins folder>/kubelet.sock. Start and Stop from one
// thread; a stopped server is not started again.

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "base/status.h"
#include "sim/kubelet/call_log.h"
#include "sim/kubelet/faults.h"
#include "sim/kubelet/plugin_registry.h"

namespace switchyard::sim {

// Deletes what kubelet deletes at its start: every socket in the folder, nothing else.
[[nodiscard]] Status DeleteSockets(const std::string& folder);

// Whether kubelet takes `name` for an extended resource: "vendor.com/thing", not under
// kubernetes.io, a valid qualified name. The error says which rule it breaks.
[[nodiscard]] Status CheckResourceName(absl::string_view name);

class RegistrationServer {
 public:
  // The references must outlive the server.
  RegistrationServer(std::string folder, PluginRegistry& registry, Faults& faults, CallLog& log);
  ~RegistrationServer();  // stops

  [[nodiscard]] Status Start();
  // Waits for Register calls in progress; the registry should be closed before.
  void Stop();

 private:
  class Service;
  std::unique_ptr<Service> service_;
};

}  // namespace switchyard::sim
