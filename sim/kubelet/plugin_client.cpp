// SPDX-License-Identifier: Apache-2.0
#include "sim/kubelet/plugin_client.h"

#include <grpcpp/grpcpp.h>

#include <array>
#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "k8s_deviceplugin_v1beta1.grpc.pb.h"
#include "sim/kubelet/answer_message.h"

namespace switchyard::sim {
namespace {

// The calls in flight of a connection, so that closing it can end them.
class OpenCalls {
 public:
  void Add(grpc::ClientContext* call) {
    absl::MutexLock lock(&mutex_);
    calls_.insert(call);
    if (closed_) call->TryCancel();
  }
  void Remove(grpc::ClientContext* call) {
    absl::MutexLock lock(&mutex_);
    calls_.erase(call);
  }
  void Close() {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
    for (grpc::ClientContext* call : calls_) call->TryCancel();
  }

 private:
  absl::Mutex mutex_;
  std::set<grpc::ClientContext*> calls_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

class Call {
 public:
  explicit Call(OpenCalls& calls) : calls_(calls) { calls_.Add(&context_); }
  ~Call() { calls_.Remove(&context_); }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  grpc::ClientContext* context() { return &context_; }

 private:
  OpenCalls& calls_;
  grpc::ClientContext context_;
};

// The error as grpc-go prints it, which is what a pod's message shows.
Status FromGrpc(const grpc::Status& status) {
  static constexpr std::array<const char*, 17> kNames = {
      "OK",       "Canceled",       "Unknown",          "InvalidArgument",   "DeadlineExceeded",
      "NotFound", "AlreadyExists",  "PermissionDenied", "ResourceExhausted", "FailedPrecondition",
      "Aborted",  "OutOfRange",     "Unimplemented",    "Internal",          "Unavailable",
      "DataLoss", "Unauthenticated"};
  if (status.ok()) return OkStatus();
  const auto code = static_cast<size_t>(status.error_code());
  return Status(static_cast<absl::StatusCode>(code),
                absl::StrCat("rpc error: code = ", code < kNames.size() ? kNames[code] : "Unknown",
                             " desc = ", status.error_message()));
}

std::vector<PluginDevice> ToDevices(const v1beta1::ListAndWatchResponse& response) {
  std::vector<PluginDevice> devices;
  devices.reserve(static_cast<size_t>(response.devices_size()));
  for (const v1beta1::Device& device : response.devices()) {
    PluginDevice& out = devices.emplace_back(PluginDevice{device.id(), device.health(), {}});
    for (const v1beta1::NUMANode& node : device.topology().nodes()) {
      out.numa_nodes.push_back(static_cast<int>(node.id()));
    }
  }
  return devices;
}

std::shared_ptr<grpc::Channel> OpenChannel(const std::string& socket_path) {
  grpc::ChannelArguments arguments;
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  // gRPC would share one connection among all channels to a path; kubelet dials for each.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(absl::StrCat("unix:", socket_path),
                                   grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

struct PluginClient::Connection {
  explicit Connection(const std::string& socket_path)
      : channel(OpenChannel(socket_path)), plugin(channel) {}

  std::shared_ptr<grpc::Channel> channel;
  v1beta1::DevicePlugin::Stub plugin;
  OpenCalls calls;
};

PluginClient::PluginClient(std::string resource, std::string socket_path,
                           absl::Duration pre_start_timeout, CallLog& log)
    : resource_(std::move(resource)),
      socket_path_(std::move(socket_path)),
      pre_start_timeout_(pre_start_timeout),
      log_(log),
      connection_(std::make_unique<Connection>(socket_path_)) {}

PluginClient::~PluginClient() = default;

Status PluginClient::Dial(absl::Duration timeout) {
  if (connection_->channel->WaitForConnected(absl::ToChronoTime(absl::Now() + timeout))) {
    return OkStatus();
  }
  return absl::UnavailableError(absl::StrCat("failed to dial device plugin at ", socket_path_,
                                             ": not connected within ",
                                             absl::FormatDuration(timeout)));
}

Result<PluginOptions> PluginClient::GetOptions() {
  log_.Count(&CallCounts::options);
  Call call(connection_->calls);
  v1beta1::DevicePluginOptions options;
  RETURN_IF_ERROR(Annotate(FromGrpc(connection_->plugin.GetDevicePluginOptions(
                               call.context(), v1beta1::Empty(), &options)),
                           "failed to get device plugin options"));
  return PluginOptions{.preferred_available = options.get_preferred_allocation_available(),
                       .pre_start_required = options.pre_start_required()};
}

void PluginClient::RunStream(
    const std::function<void(const std::vector<PluginDevice>&)>& snapshot) {
  Call call(connection_->calls);
  const auto stream = connection_->plugin.ListAndWatch(call.context(), v1beta1::Empty());
  log_.Count(&CallCounts::streams_opened);
  v1beta1::ListAndWatchResponse response;
  while (stream->Read(&response)) {
    snapshot(ToDevices(response));
    log_.Count(&CallCounts::snapshots);
  }
  (void)stream->Finish();  // however it ended, kubelet does the same
}

Result<std::vector<std::string>> PluginClient::GetPreferredAllocation(
    const PreferredRequest& request) {
  v1beta1::PreferredAllocationRequest wire;
  v1beta1::ContainerPreferredAllocationRequest& container = *wire.add_container_requests();
  container.mutable_available_deviceids()->Add(request.available.begin(), request.available.end());
  container.mutable_must_include_deviceids()->Add(request.must_include.begin(),
                                                  request.must_include.end());
  container.set_allocation_size(request.size);

  Call call(connection_->calls);
  v1beta1::PreferredAllocationResponse response;
  RETURN_IF_ERROR(
      FromGrpc(connection_->plugin.GetPreferredAllocation(call.context(), wire, &response)));
  if (response.container_responses().empty()) return std::vector<std::string>();
  const auto& ids = response.container_responses(0).deviceids();
  return std::vector<std::string>(ids.begin(), ids.end());
}

Result<std::optional<AllocateAnswer>> PluginClient::Allocate(const std::vector<std::string>& ids) {
  v1beta1::AllocateRequest wire;
  wire.add_container_requests()->mutable_devices_ids()->Add(ids.begin(), ids.end());

  Call call(connection_->calls);
  v1beta1::AllocateResponse response;
  RETURN_IF_ERROR(FromGrpc(connection_->plugin.Allocate(call.context(), wire, &response)));
  if (response.container_responses().empty()) return std::optional<AllocateAnswer>();
  return std::optional<AllocateAnswer>(ToAnswer(response.container_responses(0)));
}

Status PluginClient::PreStartContainer(const std::vector<std::string>& ids) {
  v1beta1::PreStartContainerRequest wire;
  wire.mutable_devices_ids()->Add(ids.begin(), ids.end());

  Call call(connection_->calls);
  call.context()->set_deadline(absl::ToChronoTime(absl::Now() + pre_start_timeout_));
  v1beta1::PreStartContainerResponse response;
  return FromGrpc(connection_->plugin.PreStartContainer(call.context(), wire, &response));
}

void PluginClient::Close() { connection_->calls.Close(); }

}  // namespace switchyard::sim
