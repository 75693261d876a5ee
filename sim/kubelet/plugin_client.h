// SPDX-License-Identifier: Apache-2.0
#pragma once

// kubelet's connection to one device plugin: one of its own for each registration, over
// unix:<socket>, with the authority "localhost". It owns no thread: RunStream blocks. Any thread.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"
#include "sim/kubelet/call_log.h"
#include "sim/kubelet/endpoint.h"

namespace switchyard::sim {

class PluginClient final : public PluginEndpoint {
 public:
  // The deadline of PreStartContainer is real time.
  PluginClient(std::string resource, std::string socket_path, absl::Duration pre_start_timeout,
               CallLog& log);
  ~PluginClient() override;

  // Waits, trying again, for the plugin to accept the connection; real time.
  [[nodiscard]] Status Dial(absl::Duration timeout);
  // No deadline.
  [[nodiscard]] Result<PluginOptions> GetOptions();
  // ListAndWatch, once: returns when the stream has ended, for whatever reason.
  void RunStream(const std::function<void(const std::vector<PluginDevice>&)>& snapshot);
  Result<std::vector<std::string>> GetPreferredAllocation(const PreferredRequest& request) override;
  Result<std::optional<AllocateAnswer>> Allocate(const std::vector<std::string>& ids) override;
  Status PreStartContainer(const std::vector<std::string>& ids) override;

  // Ends every call in flight and makes later ones fail; does not wait for them.
  void Close();

  [[nodiscard]] const std::string& resource() const { return resource_; }
  [[nodiscard]] const std::string& socket_path() const { return socket_path_; }

 private:
  struct Connection;  // keeps gRPC's headers out of here

  const std::string resource_;
  const std::string socket_path_;
  const absl::Duration pre_start_timeout_;
  CallLog& log_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace switchyard::sim
