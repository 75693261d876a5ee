// SPDX-License-Identifier: Apache-2.0
#pragma once

// The gRPC server of one resource, on a socket of its own: answers kubelet's calls and keeps its
// ListAndWatch streams up to date. gRPC's callback API, because a stream's end is then an event
// (and because its unary calls measured faster than the synchronous API's). Any thread; the
// destructor ends streams and calls within about a second.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "base/status.h"
#include "kube/admission.h"
#include "kube/catalogue.h"
#include "kube/socket_files.h"

namespace grpc {
class Server;
}
namespace v1beta1 {
class ListAndWatchResponse;
}

namespace switchyard::kube {

class PluginServer {
 public:
  struct Hooks {
    std::function<void()> stream_changed;  // one came or ended; must not block
    std::function<void()> after_allocate;  // a successful Allocate was handed to gRPC to send
  };

  // Listens on <folder>/<name>, readable and writable by root only.
  [[nodiscard]] static Result<std::unique_ptr<PluginServer>> Start(
      const std::string& folder, const std::string& name, std::shared_ptr<const Resource> resource,
      const AdmissionParts& parts, Hooks hooks);
  ~PluginServer();
  PluginServer(const PluginServer&) = delete;
  PluginServer& operator=(const PluginServer&) = delete;

  // Answers from `resource` from now on; streams get the device list if it differs.
  void Publish(std::shared_ptr<const Resource> resource);

  // False once somebody removed or replaced the socket's file: no kubelet can reach us.
  [[nodiscard]] bool SocketIsThere() const;
  [[nodiscard]] const std::string& name() const { return name_; }

  // Until every Allocate and PreStartContainer was answered, or that time.
  void AwaitCalls(absl::Time until);

  struct Streams {
    std::int64_t came = 0;  // since the start
    int open = 0;
  };
  [[nodiscard]] Streams streams() const;

 private:
  class Service;
  class Stream;
  class Answer;
  using List = std::shared_ptr<const v1beta1::ListAndWatchResponse>;

  PluginServer(std::string path, std::string name, const AdmissionParts& parts, Hooks hooks);

  [[nodiscard]] std::shared_ptr<const Resource> resource() const;
  void EndStreams();
  void Pump(Stream& stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string path_;
  const std::string name_;
  const AdmissionParts parts_;
  const Hooks hooks_;
  std::optional<SocketId> socket_;

  mutable absl::Mutex mutex_;
  std::shared_ptr<const Resource> resource_ ABSL_GUARDED_BY(mutex_);
  List list_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<Stream*> streams_ ABSL_GUARDED_BY(mutex_);  // each deletes itself when done
  std::int64_t came_ ABSL_GUARDED_BY(mutex_) = 0;
  int in_flight_ ABSL_GUARDED_BY(mutex_) = 0;

  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace switchyard::kube
