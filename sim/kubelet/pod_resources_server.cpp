// SPDX-License-Identifier: Apache-2.0
#include "sim/kubelet/pod_resources_server.h"

#include <grpcpp/grpcpp.h>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "k8s_podresources_v1.grpc.pb.h"
#include "sim/kubelet/server.h"
#include "sim/kubelet/token_bucket.h"

namespace switchyard::sim {
namespace {

constexpr double kCallsPerSecond = 100;
constexpr double kBurst = 10;

// One entry a device, even of the same resource.
void AddDevice(const PodDevice& device, v1::ContainerDevices& out) {
  out.set_resource_name(device.resource);
  out.add_device_ids(device.id);
  for (const int node : device.numa_nodes) out.mutable_topology()->add_nodes()->set_id(node);
}

void ToMessage(const PodView& pod, v1::PodResources& out) {
  out.set_name(pod.name);
  out.set_namespace_(pod.ns);
  for (const auto& [name, devices] : pod.containers) {
    v1::ContainerResources& container = *out.add_containers();
    container.set_name(name);
    for (const PodDevice& device : devices) AddDevice(device, *container.add_devices());
  }
}

}  // namespace

class PodResourcesServer::Service final : public v1::PodResourcesLister::Service {
 public:
  Service(const Options& options, PodResourcesSource& source, Clock& clock, CallLog& log)
      : options_(options),
        source_(source),
        clock_(clock),
        log_(log),
        bucket_(kCallsPerSecond, kBurst, clock.Monotonic()) {}

  Status Start() {
    grpc::ServerBuilder builder;
    builder.RegisterService(this);
    ASSIGN_OR_RETURN(server_, StartServer(builder, absl::StrCat(options_.folder, "/kubelet.sock")));
    return OkStatus();
  }

  void Stop() { StopServer(std::move(server_)); }

  grpc::Status List(grpc::ServerContext* /*context*/,
                    const v1::ListPodResourcesRequest* /*request*/,
                    v1::ListPodResourcesResponse* response) override {
    if (!Admit(&CallCounts::pod_list)) return RateLimited();
    for (const PodView& pod : source_.ListPods()) ToMessage(pod, *response->add_pod_resources());
    return grpc::Status::OK;
  }

  grpc::Status Get(grpc::ServerContext* /*context*/, const v1::GetPodResourcesRequest* request,
                   v1::GetPodResourcesResponse* response) override {
    if (!Admit(&CallCounts::pod_get)) return RateLimited();
    const std::optional<PodView> pod =
        source_.GetPod(request->pod_namespace(), request->pod_name());
    if (!pod) {  // an error without a code in kubelet: grpc-go sends Unknown
      return {grpc::StatusCode::UNKNOWN, absl::StrCat("pod ", request->pod_name(), " in namespace ",
                                                      request->pod_namespace(), " not found")};
    }
    ToMessage(*pod, *response->mutable_pod_resources());
    return grpc::Status::OK;
  }

  grpc::Status GetAllocatableResources(grpc::ServerContext* /*context*/,
                                       const v1::AllocatableResourcesRequest* /*request*/,
                                       v1::AllocatableResourcesResponse* response) override {
    if (!Admit(&CallCounts::pod_allocatable)) return RateLimited();
    for (const PodDevice& device : source_.HealthyDevices()) {
      AddDevice(device, *response->add_devices());
    }
    return grpc::Status::OK;
  }

 private:
  static grpc::Status RateLimited() {
    return {grpc::StatusCode::RESOURCE_EXHAUSTED, "rejected by rate limit"};
  }

  bool Admit(std::int64_t CallCounts::* counter) {
    bool taken = true;
    if (options_.limit) {
      absl::MutexLock lock(&mutex_);
      taken = bucket_.Take(clock_.Monotonic());
    }
    log_.Count(taken ? counter : &CallCounts::rate_limited);
    return taken;
  }

  const Options options_;
  PodResourcesSource& source_;
  Clock& clock_;
  CallLog& log_;
  absl::Mutex mutex_;
  TokenBucket bucket_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<grpc::Server> server_;
};

PodResourcesServer::PodResourcesServer(const Options& options, PodResourcesSource& source,
                                       Clock& clock, CallLog& log)
    : service_(std::make_unique<Service>(options, source, clock, log)) {}

PodResourcesServer::~PodResourcesServer() { Stop(); }

Status PodResourcesServer::Start() { return service_->Start(); }

void PodResourcesServer::Stop() { service_->Stop(); }

}  // namespace switchyard::sim
