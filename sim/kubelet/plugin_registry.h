// SPDX-License-Identifier: Apache-2.0
#pragma once

// The plugins that are connected, and a thread for the stream of each. What it learns goes to the
// device manager. Connect comes from gRPC's threads, Close from the one that stops kubelet.

#include <atomic>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "sim/kubelet/call_log.h"
#include "sim/kubelet/device_manager.h"
#include "sim/kubelet/plugin_client.h"

namespace switchyard::sim {

class PluginRegistry {
 public:
  struct Options {
    absl::Duration dial_timeout;
    absl::Duration pre_start_timeout;
    bool by_name_only = false;  // KubeletOptions::plugins_by_name_only
  };
  // The references must outlive the registry.
  PluginRegistry(const Options& options, DeviceManager& manager, CallLog& log)
      : options_(options), manager_(manager), log_(log) {}
  ~PluginRegistry() { Close(); }

  // Dials back, reads the plugin's options and makes it the one of its resource; the stream follows
  // in the background, or never (a fault). Blocks; not under any lock.
  [[nodiscard]] Status Connect(const std::string& resource, const std::string& socket_path,
                               bool open_stream);

  // Disconnects all and waits for their streams to end; later Connects fail.
  void Close();

 private:
  struct Stream {
    std::shared_ptr<PluginClient> client;
    std::thread thread;
    std::atomic<bool> ended = false;
  };
  void StartStream(std::shared_ptr<PluginClient> client);
  [[nodiscard]] const std::string& KeyOf(const PluginClient& client) const;
  void StreamEnded(const PluginClient& client);
  // Takes those out of the list that kubelet can't tell from this one, and returns the first; null
  // if there is none.
  std::shared_ptr<PluginClient> Take(const PluginClient& client);

  const Options options_;
  DeviceManager& manager_;
  CallLog& log_;

  absl::Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::shared_ptr<PluginClient>> clients_ ABSL_GUARDED_BY(mutex_);
  std::list<Stream> streams_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace switchyard::sim
