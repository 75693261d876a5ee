// SPDX-License-Identifier: Apache-2.0
#include "sim/kubelet/fake_plugin_for_test.h"

#include <grpcpp/grpcpp.h>

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "k8s_deviceplugin_v1beta1.grpc.pb.h"
#include "sim/kubelet/answer_message.h"

namespace switchyard::sim {
namespace {

grpc::Status ToGrpc(const Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), std::string(status.message())};
}

}  // namespace

class FakePlugin::Service final : public v1beta1::DevicePlugin::Service {
 public:
  Service(std::string folder, std::string socket_name, Behaviour behaviour)
      : folder_(std::move(folder)),
        socket_name_(std::move(socket_name)),
        behaviour_(std::move(behaviour)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(absl::StrCat("unix:", folder_, "/", socket_name_),
                             grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }

  Status Register(const std::string& resource, const std::string& version) const {
    const auto kubelet = v1beta1::Registration::NewStub(grpc::CreateChannel(
        absl::StrCat("unix:", folder_, "/kubelet.sock"), grpc::InsecureChannelCredentials()));
    v1beta1::RegisterRequest request;
    request.set_version(version);
    request.set_endpoint(socket_name_);
    request.set_resource_name(resource);
    grpc::ClientContext context;
    v1beta1::Empty response;
    const grpc::Status status = kubelet->Register(&context, request, &response);
    return Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  }

  void Send(std::vector<PluginDevice> snapshot) {
    absl::MutexLock lock(&mutex_);
    snapshot_ = std::move(snapshot);
    ++version_;
    changed_.SignalAll();
  }

  void EndStreams() {
    absl::MutexLock lock(&mutex_);
    ++ended_;
    changed_.SignalAll();
  }

  void Stop() {
    {
      absl::MutexLock lock(&mutex_);
      stopping_ = true;
      changed_.SignalAll();
    }
    if (server_ == nullptr) return;
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
    server_.reset();
  }

  std::string authority() const {
    absl::MutexLock lock(&mutex_);
    return authority_;
  }

  grpc::Status GetDevicePluginOptions(grpc::ServerContext* context, const v1beta1::Empty*,
                                      v1beta1::DevicePluginOptions* response) override {
    response->set_get_preferred_allocation_available(behaviour_.preferred_available);
    response->set_pre_start_required(behaviour_.pre_start_required);
    const grpc::string_ref authority = context->ExperimentalGetAuthority();
    absl::MutexLock lock(&mutex_);
    authority_.assign(authority.data(), authority.size());
    return grpc::Status::OK;
  }

  grpc::Status ListAndWatch(grpc::ServerContext*, const v1beta1::Empty*,
                            grpc::ServerWriter<v1beta1::ListAndWatchResponse>* writer) override {
    int sent = 0;
    absl::MutexLock lock(&mutex_);
    const int ended = ended_;
    while (!stopping_ && ended_ == ended) {
      if (sent == version_) {
        changed_.Wait(&mutex_);
        continue;
      }
      sent = version_;
      writer->Write(ToList(snapshot_));
    }
    return grpc::Status::OK;
  }

  grpc::Status GetPreferredAllocation(grpc::ServerContext*,
                                      const v1beta1::PreferredAllocationRequest* request,
                                      v1beta1::PreferredAllocationResponse* response) override {
    if (!behaviour_.prefer) return grpc::Status::OK;
    const auto& container = request->container_requests(0);
    const auto answer =
        behaviour_.prefer({.available = {container.available_deviceids().begin(),
                                         container.available_deviceids().end()},
                           .must_include = {container.must_include_deviceids().begin(),
                                            container.must_include_deviceids().end()},
                           .size = container.allocation_size()});
    if (!answer.ok()) return ToGrpc(answer.status());
    response->add_container_responses()->mutable_deviceids()->Add(answer->begin(), answer->end());
    return grpc::Status::OK;
  }

  grpc::Status Allocate(grpc::ServerContext*, const v1beta1::AllocateRequest* request,
                        v1beta1::AllocateResponse* response) override {
    const auto& ids = request->container_requests(0).devices_ids();
    Result<std::optional<AllocateAnswer>> answer = AllocateAnswer();
    if (behaviour_.allocate) answer = behaviour_.allocate({ids.begin(), ids.end()});
    if (!answer.ok()) return ToGrpc(answer.status());
    if (*answer) ToMessage(**answer, *response->add_container_responses());
    return grpc::Status::OK;
  }

  grpc::Status PreStartContainer(grpc::ServerContext*,
                                 const v1beta1::PreStartContainerRequest* request,
                                 v1beta1::PreStartContainerResponse*) override {
    if (!behaviour_.pre_start) return grpc::Status::OK;
    return ToGrpc(
        behaviour_.pre_start({request->devices_ids().begin(), request->devices_ids().end()}));
  }

 private:
  static v1beta1::ListAndWatchResponse ToList(const std::vector<PluginDevice>& snapshot) {
    v1beta1::ListAndWatchResponse message;
    for (const PluginDevice& device : snapshot) {
      v1beta1::Device& out = *message.add_devices();
      out.set_id(device.id);
      out.set_health(device.health);
      for (const int node : device.numa_nodes) out.mutable_topology()->add_nodes()->set_id(node);
    }
    return message;
  }

  const std::string folder_;
  const std::string socket_name_;
  const Behaviour behaviour_;
  mutable absl::Mutex mutex_;
  absl::CondVar changed_;
  std::vector<PluginDevice> snapshot_ ABSL_GUARDED_BY(mutex_);
  int version_ ABSL_GUARDED_BY(mutex_) = 0;
  int ended_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::string authority_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<grpc::Server> server_;
};

FakePlugin::FakePlugin(std::string folder, std::string socket_name, Behaviour behaviour)
    : service_(std::make_unique<Service>(std::move(folder), std::move(socket_name),
                                         std::move(behaviour))) {}
FakePlugin::~FakePlugin() { Stop(); }
Status FakePlugin::Register(const std::string& resource, const std::string& version) const {
  return service_->Register(resource, version);
}
void FakePlugin::Send(std::vector<PluginDevice> snapshot) { service_->Send(std::move(snapshot)); }
void FakePlugin::EndStreams() { service_->EndStreams(); }
void FakePlugin::Stop() { service_->Stop(); }
std::string FakePlugin::authority() const { return service_->authority(); }

std::vector<PluginDevice> HealthyDevices(const std::vector<std::string>& ids) {
  std::vector<PluginDevice> devices;
  devices.reserve(ids.size());
  for (const std::string& id : ids) devices.push_back({id, "Healthy", {}});
  return devices;
}

}  // namespace switchyard::sim
