// SPDX-License-Identifier: Apache-2.0
#include "kube/register_call.h"

#include "absl/strings/str_cat.h"
#include "k8s_deviceplugin_v1beta1.grpc.pb.h"
#include "kube/grpc_client.h"

namespace switchyard::kube {
namespace {
constexpr char kVersion[] = "v1beta1";
constexpr int kMaxAnswer = 64 * 1024;  // it is an empty message
}  // namespace

Status RegisterCall::Run(const std::string& kubelet_socket, absl::Duration timeout,
                         const std::string& endpoint, const std::string& resource,
                         const Options& options) {
  v1beta1::RegisterRequest request;
  request.set_version(kVersion);
  request.set_endpoint(endpoint);
  request.set_resource_name(resource);
  request.mutable_options()->set_get_preferred_allocation_available(options.preferred_available);
  request.mutable_options()->set_pre_start_required(options.pre_start_required);
  grpc::ClientContext context;
  SetTimeout(context, timeout);
  {
    absl::MutexLock lock(&mutex_);
    if (cancelled_) return absl::CancelledError("the agent is stopping");
    running_ = &context;
  }
  v1beta1::Empty answer;
  const grpc::Status status = v1beta1::Registration::NewStub(DialUnix(kubelet_socket, kMaxAnswer))
                                  ->Register(&context, request, &answer);
  absl::MutexLock lock(&mutex_);
  running_ = nullptr;
  return Annotate(FromGrpc(status), absl::StrCat("registering with kubelet at ", kubelet_socket));
}

void RegisterCall::CancelAll() {
  absl::MutexLock lock(&mutex_);
  cancelled_ = true;
  if (running_ != nullptr) running_->TryCancel();
}

bool RegisterCall::cancelled() const {
  absl::MutexLock lock(&mutex_);
  return cancelled_;
}

}  // namespace switchyard::kube
