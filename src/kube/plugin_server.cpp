// SPDX-License-Identifier: Apache-2.0
#include "kube/plugin_server.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "k8s_deviceplugin_v1beta1.grpc.pb.h"
#include "kube/grpc_client.h"

namespace switchyard::kube {
namespace {

constexpr std::chrono::milliseconds kShutdown(1000);  // for calls in flight at the end

// The list in kubelet's words. A device of unknown NUMA node has no topology (never node -1).
v1beta1::ListAndWatchResponse MakeList(const Resource& resource) {
  v1beta1::ListAndWatchResponse list;
  for (const OfferedDevice& offered : resource.devices) {
    v1beta1::Device& device = *list.add_devices();
    device.set_id(offered.id);
    device.set_health(offered.healthy ? "Healthy" : "Unhealthy");
    if (offered.numa_node.has_value())
      device.mutable_topology()->add_nodes()->set_id(*offered.numa_node);
  }
  return list;
}

}  // namespace

// One ListAndWatch. Everything but the reactor's own calls is under the server's mutex.
class PluginServer::Stream final : public grpc::ServerWriteReactor<v1beta1::ListAndWatchResponse> {
 public:
  explicit Stream(PluginServer& server) : server_(server) {}

  void Send(List list) {
    writing_ = true;
    sent_ = std::move(list);
    StartWrite(sent_.get());
  }
  // At once, or after the write in flight.
  void End() {
    ending_ = true;
    if (writing_ || finished_) return;
    finished_ = true;
    Finish(grpc::Status::OK);
  }
  [[nodiscard]] bool open() const { return !ending_; }
  [[nodiscard]] bool idle() const { return !ending_ && !writing_; }
  [[nodiscard]] const List& sent() const { return sent_; }

  void OnWriteDone(bool ok) override {
    absl::MutexLock lock(&server_.mutex_);
    writing_ = false;
    if (!ok || ending_) {
      End();
    } else {
      server_.Pump(*this);
    }
  }
  void OnCancel() override {
    {
      absl::MutexLock lock(&server_.mutex_);
      End();
    }
    server_.hooks_.stream_changed();
  }
  void OnDone() override {
    PluginServer& server = server_;
    server.hooks_.stream_changed();
    absl::MutexLock lock(&server.mutex_);  // the last use of `server`: its destructor waits for it
    server.streams_.erase(this);
    delete this;
  }

 private:
  PluginServer& server_;
  List sent_;
  bool writing_ = false;
  bool ending_ = false;
  bool finished_ = false;
};

// Of a call that may wait for Fabric Manager: in flight until its answer was sent.
class PluginServer::Answer final : public grpc::ServerUnaryReactor {
 public:
  explicit Answer(PluginServer& server) : server_(server) {
    const absl::MutexLock lock(&server_.mutex_);
    ++server_.in_flight_;
  }
  void OnDone() override {
    PluginServer& server = server_;
    const absl::MutexLock lock(&server.mutex_);  // the last use of `server`, as of a stream
    --server.in_flight_;
    delete this;
  }

 private:
  PluginServer& server_;
};

class PluginServer::Service final : public v1beta1::DevicePlugin::CallbackService {
 public:
  explicit Service(PluginServer& server) : server_(server) {}

  grpc::ServerUnaryReactor* GetDevicePluginOptions(grpc::CallbackServerContext* context,
                                                   const v1beta1::Empty*,
                                                   v1beta1::DevicePluginOptions* options) override {
    const std::shared_ptr<const Resource> resource = server_.resource();
    options->set_get_preferred_allocation_available(resource->preferred_available);
    options->set_pre_start_required(resource->pre_start_required);
    auto* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  grpc::ServerWriteReactor<v1beta1::ListAndWatchResponse>* ListAndWatch(
      grpc::CallbackServerContext*, const v1beta1::Empty*) override {
    auto* stream = new Stream(server_);  // deletes itself in OnDone
    {
      absl::MutexLock lock(&server_.mutex_);
      ++server_.came_;
      server_.streams_.insert(stream);
      server_.Pump(*stream);
    }
    server_.hooks_.stream_changed();
    return stream;
  }

  grpc::ServerUnaryReactor* GetPreferredAllocation(
      grpc::CallbackServerContext* context, const v1beta1::PreferredAllocationRequest* request,
      v1beta1::PreferredAllocationResponse* response) override {
    Prefer(server_.parts_, *server_.resource(), *request, *response);
    auto* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  // Finish hands the answer to the kernel, or to gRPC to send; nothing of the call may be used
  // afterwards.
  grpc::ServerUnaryReactor* Allocate(grpc::CallbackServerContext*,
                                     const v1beta1::AllocateRequest* request,
                                     v1beta1::AllocateResponse* response) override {
    auto* reactor = new Answer(server_);  // deletes itself in OnDone
    const Status status = kube::Allocate(server_.parts_, *server_.resource(), *request, *response);
    reactor->Finish(ToGrpc(status));
    if (status.ok() && server_.hooks_.after_allocate) server_.hooks_.after_allocate();
    return reactor;
  }

  grpc::ServerUnaryReactor* PreStartContainer(grpc::CallbackServerContext*,
                                              const v1beta1::PreStartContainerRequest* request,
                                              v1beta1::PreStartContainerResponse*) override {
    auto* reactor = new Answer(server_);  // deletes itself in OnDone
    const std::shared_ptr<const Resource> resource = server_.resource();
    if (resource->pre_start_required) {
      reactor->Finish(ToGrpc(PreStart(server_.parts_, *resource, *request)));
    } else {
      reactor->Finish(
          {grpc::StatusCode::UNIMPLEMENTED, "this plugin asks for no PreStartContainer"});
    }
    return reactor;
  }

 private:
  PluginServer& server_;
};

PluginServer::PluginServer(std::string path, std::string name, const AdmissionParts& parts,
                           Hooks hooks)
    : path_(std::move(path)), name_(std::move(name)), parts_(parts), hooks_(std::move(hooks)) {}

Result<std::unique_ptr<PluginServer>> PluginServer::Start(const std::string& folder,
                                                          const std::string& name,
                                                          std::shared_ptr<const Resource> resource,
                                                          const AdmissionParts& parts,
                                                          Hooks hooks) {
  const std::string path = absl::StrCat(folder, "/", name);
  if (path.size() > kMaxSocketPath) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": longer than ", kMaxSocketPath,
                                                   " bytes, the kernel's limit of a socket's path: "
                                                   "use a shorter folder in paths.devicePlugins"));
  }
  struct stat found{};
  if (::stat(folder.c_str(), &found) != 0) {
    return Annotate(ErrnoError(errno, folder),
                    "kubelet's folder of device plugins (made by kubelet; is it mounted here?)");
  }
  auto server =
      std::unique_ptr<PluginServer>(new PluginServer(path, name, parts, std::move(hooks)));
  server->Publish(std::move(resource));
  server->service_ = std::make_unique<Service>(*server);
  grpc::ServerBuilder builder;
  int bound = 0;
  builder.AddListeningPort(absl::StrCat("unix:", path), grpc::InsecureServerCredentials(), &bound);
  builder.RegisterService(server->service_.get());
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr || bound == 0)
    return absl::UnavailableError(absl::StrCat("can't listen on ", path));
  if (::chmod(path.c_str(), 0600) != 0) return ErrnoError(errno, path);
  server->socket_ = StatSocket(path);
  return server;
}

PluginServer::~PluginServer() {
  if (server_ == nullptr) return;
  EndStreams();
  server_->Shutdown(std::chrono::system_clock::now() + kShutdown);
  server_.reset();
  const auto none_left = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return streams_.empty() && in_flight_ == 0;
  };
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&none_left));
}

void PluginServer::Publish(std::shared_ptr<const Resource> resource) {
  auto list = std::make_shared<const v1beta1::ListAndWatchResponse>(MakeList(*resource));
  absl::MutexLock lock(&mutex_);
  resource_ = std::move(resource);
  // kubelet writes its checkpoint at each list: an equal one is not sent.
  if (list_ != nullptr && list_->SerializeAsString() == list->SerializeAsString()) return;
  list_ = std::move(list);
  for (Stream* stream : streams_) Pump(*stream);
}

void PluginServer::Pump(Stream& stream) {
  if (stream.idle() && stream.sent() != list_) stream.Send(list_);
}

bool PluginServer::SocketIsThere() const { return StatSocket(path_) == socket_; }

std::shared_ptr<const Resource> PluginServer::resource() const {
  absl::MutexLock lock(&mutex_);
  return resource_;
}

PluginServer::Streams PluginServer::streams() const {
  absl::MutexLock lock(&mutex_);
  Streams streams{came_, 0};
  for (const Stream* stream : streams_) streams.open += stream->open() ? 1 : 0;
  return streams;
}

void PluginServer::EndStreams() {
  absl::MutexLock lock(&mutex_);
  for (Stream* stream : streams_) stream->End();
}

void PluginServer::AwaitCalls(absl::Time until) {
  const auto none = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return in_flight_ == 0; };
  const absl::MutexLock lock(&mutex_);
  (void)mutex_.AwaitWithDeadline(absl::Condition(&none), until);
}

}  // namespace switchyard::kube
