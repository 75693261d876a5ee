// SPDX-License-Identifier: Apache-2.0
#include "sim/kubelet/plugin_registry.h"

#include <algorithm>
#include <utility>

namespace switchyard::sim {

Status PluginRegistry::Connect(const std::string& resource, const std::string& socket_path,
                               bool open_stream) {
  const auto client =
      std::make_shared<PluginClient>(resource, socket_path, options_.pre_start_timeout, log_);
  {
    absl::MutexLock lock(&mutex_);
    if (closed_) return absl::UnavailableError("kubelet is stopping");
    // By name there is room for one: the one before is forgotten, its stream goes on.
    if (options_.by_name_only) {
      std::erase_if(clients_, [&](const auto& other) { return other->resource() == resource; });
    }
    clients_.push_back(client);
  }
  Status status = client->Dial(options_.dial_timeout);
  if (status.ok()) {
    const Result<PluginOptions> options = client->GetOptions();
    status = options.status();
    if (status.ok()) manager_.Connected(resource, client, *options);
  }
  if (!status.ok()) {
    Take(*client);
    return status;
  }
  if (open_stream) StartStream(client);
  return OkStatus();
}

void PluginRegistry::StartStream(std::shared_ptr<PluginClient> client) {
  absl::MutexLock lock(&mutex_);
  if (closed_) return;
  streams_.remove_if([](Stream& stream) {
    if (!stream.ended) return false;
    stream.thread.join();
    return true;
  });
  Stream& stream = streams_.emplace_back();
  stream.thread = std::thread([this, &stream, client = std::move(client)] {
    client->RunStream([&](const std::vector<PluginDevice>& snapshot) {
      manager_.Update(client->resource(), snapshot);
    });
    StreamEnded(*client);
    log_.Count(&CallCounts::streams_ended);
    stream.ended = true;
  });
}

void PluginRegistry::StreamEnded(const PluginClient& client) {
  // Not necessarily this very client: kubelet looks for one by its key.
  const std::shared_ptr<PluginClient> found = Take(client);
  if (found == nullptr) return;
  found->Close();
  manager_.Disconnected(found->resource());
}

std::shared_ptr<PluginClient> PluginRegistry::Take(const PluginClient& client) {
  absl::MutexLock lock(&mutex_);
  const auto found = std::find_if(clients_.begin(), clients_.end(), [&](const auto& other) {
    return other->resource() == client.resource() &&
           (options_.by_name_only || other->socket_path() == client.socket_path());
  });
  if (found == clients_.end()) return nullptr;
  std::shared_ptr<PluginClient> taken = std::move(*found);
  clients_.erase(found);
  return taken;
}

void PluginRegistry::Close() {
  std::vector<std::shared_ptr<PluginClient>> clients;
  std::list<Stream> streams;
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
    clients.swap(clients_);
    streams.swap(streams_);
  }
  for (const auto& client : clients) {
    client->Close();
    manager_.Disconnected(client->resource());
  }
  for (Stream& stream : streams) stream.thread.join();
}

}  // namespace switchyard::sim
