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
    if (status.ok()) status = manager_.Connected(resource, KeyOf(*client), client, *options);
  }
  if (!status.ok()) {
    // Of a socket that was connected already this takes out that client too: from now on nobody
    // looks at how its stream ends. So in kubelet (connectClient in plugin/v1beta1/handler.go).
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
  stream.client = client;
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
  manager_.Disconnected(found->resource(), KeyOf(*found));
}

std::shared_ptr<PluginClient> PluginRegistry::Take(const PluginClient& client) {
  absl::MutexLock lock(&mutex_);
  std::shared_ptr<PluginClient> first;
  std::erase_if(clients_, [&](const auto& other) {
    if (other->resource() != client.resource() || KeyOf(*other) != KeyOf(client)) return false;
    if (first == nullptr) first = other;
    return true;
  });
  return first;
}

// By what a resource's plugins are told apart.
const std::string& PluginRegistry::KeyOf(const PluginClient& client) const {
  static const std::string kNothing;
  return options_.by_name_only ? kNothing : client.socket_path();
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
  // Also those that were forgotten: with kubelet all its connections end.
  for (const Stream& stream : streams) clients.push_back(stream.client);
  for (const auto& client : clients) {
    client->Close();
    manager_.Disconnected(client->resource(), KeyOf(*client));
  }
  for (Stream& stream : streams) stream.thread.join();
}

}  // namespace switchyard::sim
