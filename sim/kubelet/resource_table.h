// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the plugins said: per resource its endpoint, its devices and their health. A pure value: no
// lock, no clock (every `now` is the caller's monotonic time); the device manager owns it.

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"
#include "sim/kubelet/endpoint.h"

namespace switchyard::sim {

struct Registered {
  std::shared_ptr<PluginEndpoint> plugin;
  PluginOptions options;
};

struct Resource {
  std::map<std::string, Registered> registered;  // by socket: those whose end kubelet has not seen
  // The one that is called.
  std::shared_ptr<PluginEndpoint> plugin;  // null after a restart of kubelet: a stopped endpoint
  PluginOptions options;                   // none of them after a restart of kubelet
  std::optional<absl::Duration> stopped_at;
  bool listed = false;  // a snapshot came, now or before a restart: kubelet knows the resource
  std::map<std::string, PluginDevice> devices;  // the last snapshot
  std::set<std::string> healthy;
  std::set<std::string> unhealthy;  // an id sent with both healths is in both sets

  [[nodiscard]] bool connected() const { return plugin != nullptr && !stopped_at; }
  [[nodiscard]] bool has_topology() const;
};

class ResourceTable {
 public:
  // The newest registration wins; the others stay known. The devices of the one before stay until
  // the first snapshot. kAlreadyExists for a socket that is known. The empty socket, for kubelets
  // that don't tell plugins by it, is one that each registration replaces.
  [[nodiscard]] Status Connect(const std::string& resource, const std::string& socket,
                               std::shared_ptr<PluginEndpoint> plugin, PluginOptions options);
  // Another one that is known is called from now on, and the devices stay as they are. With the
  // last one all devices become unhealthy and the resource is stopped.
  void Disconnect(const std::string& resource, const std::string& socket, absl::Duration now);
  // A snapshot: what it does not name is gone. It does not start a stopped endpoint again.
  void Update(const std::string& resource, const std::vector<PluginDevice>& snapshot);

  // Removes what has been stopped for `grace`; returns how long until the next is due.
  absl::Duration RemoveExpired(absl::Duration now, absl::Duration grace);
  // kubelet restarted: all is forgotten, and these come back with no devices and a stopped
  // endpoint.
  void Restore(const std::set<std::string>& listed, absl::Duration now);

  [[nodiscard]] const Resource* Find(const std::string& resource) const;
  [[nodiscard]] const std::map<std::string, Resource>& all() const { return resources_; }

 private:
  std::map<std::string, Resource> resources_;
};

}  // namespace switchyard::sim
