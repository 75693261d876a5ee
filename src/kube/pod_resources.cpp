// SPDX-License-Identifier: Apache-2.0
#include "kube/pod_resources.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "k8s_podresources_v1.grpc.pb.h"
#include "kube/grpc_client.h"
#include "kube/resource_names.h"

namespace switchyard::kube {
namespace {

// List holds every pod of the node, also those without devices.
constexpr int kMaxAnswer = 16 * 1024 * 1024;
// The bucket fills again by one call in 10 ms; others wait for it too.
constexpr absl::Duration kFirstPause = absl::Milliseconds(20);
constexpr int kAttempts = 6;  // pauses of 20, 40, ... 320 ms

constexpr char kPodOwner[] = "pod";

// kubelet's, not gRPC's own code of the same number for an answer over kMaxAnswer.
bool IsRateLimit(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED &&
         absl::StrContains(status.error_message(), "rate limit");
}

// `call` makes one attempt; it is repeated while kubelet's rate limit refuses it and time is left.
template <typename Call>
Status CallKubelet(const PodResourcesClient::Options& options, Clock& clock, Call call) {
  const absl::Duration end = clock.Monotonic() + options.timeout;
  absl::Duration pause = kFirstPause;
  grpc::Status status;
  for (int attempt = 1; attempt <= kAttempts; ++attempt, pause *= 2) {
    const absl::Duration left = end - clock.Monotonic();
    grpc::ClientContext context;
    SetTimeout(context, left);
    status = call(*v1::PodResourcesLister::NewStub(DialUnix(options.socket, kMaxAnswer)), context);
    if (!IsRateLimit(status) || attempt == kAttempts || left <= pause) break;
    Wakeup nobody;
    nobody.WaitFor(clock, pause);
  }
  return Annotate(FromGrpc(status), absl::StrCat("kubelet's PodResources at ", options.socket));
}

// One of several entries of a resource: all of them count.
void AddEntry(const Offer& offer, const v1::ContainerDevices& entry, const tenancy::Owner& owner,
              tenancy::Assignments& assignments) {
  for (const std::string& id : entry.device_ids()) {
    const OfferedDevice* device = offer.FindDevice(entry.resource_name(), id);
    if (device == nullptr) continue;
    // The whole group is theirs. Of two pods (kubelet before 1.34 lists ended ones too) the first
    // one is kept: taken is taken.
    for (const PciAddress& member : device->members) assignments.try_emplace(member, owner);
  }
}

bool IsStatic(const v1::PodResources& pod, absl::string_view node) {
  absl::string_view name = pod.name();
  return absl::ConsumeSuffix(&name, absl::AsciiStrToLower(node)) && absl::EndsWith(name, "-");
}

// kubelet has no code for it: its error is this text, which grpc-go sends as Unknown.
bool IsNoSuchPod(const Status& status, const v1::GetPodResourcesRequest& request) {
  return absl::IsNotFound(status) ||
         (absl::IsUnknown(status) &&
          absl::EndsWith(status.message(),
                         absl::StrCat("pod ", request.pod_name(), " in namespace ",
                                      request.pod_namespace(), " not found")));
}

bool IsOurVendors(absl::string_view resource) {
  return absl::ConsumePrefix(&resource, kResourceVendor) && absl::StartsWith(resource, "/");
}

// kFailedPrecondition if it has devices under our vendor's names that can't be told apart: they
// may be the ones asked for, under a name or number of before.
Result<bool> HasOneOf(const Offer& offer, const v1::PodResources& pod,
                      std::span<const PciAddress> devices) {
  std::string untold;
  for (const v1::ContainerResources& container : pod.containers()) {
    for (const v1::ContainerDevices& entry : container.devices()) {
      if (!IsOurVendors(entry.resource_name())) continue;
      for (const std::string& id : entry.device_ids()) {
        const OfferedDevice* device = offer.FindDevice(entry.resource_name(), id);
        if (device == nullptr) {
          untold = absl::StrCat(entry.resource_name(), "=", id);
          continue;
        }
        for (const PciAddress& member : device->members) {
          if (std::find(devices.begin(), devices.end(), member) != devices.end()) return true;
        }
      }
    }
  }
  if (untold.empty()) return false;
  return absl::FailedPreconditionError(absl::StrCat("pod ", pod.namespace_(), "/", pod.name(),
                                                    " has ", untold,
                                                    ", which is none of the devices offered now"));
}

}  // namespace

PodResourcesClient::PodResourcesClient(Options options, const Catalogue& catalogue, Clock& clock)
    : options_(std::move(options)), catalogue_(catalogue), clock_(clock) {}

Result<tenancy::AssignmentView> PodResourcesClient::Read() {
  const std::optional<SocketId> socket = StatSocket(options_.socket);
  v1::ListPodResourcesResponse list;
  RETURN_IF_ERROR(CallKubelet(
      options_, clock_, [&](v1::PodResourcesLister::Stub& kubelet, grpc::ClientContext& context) {
        return kubelet.List(&context, v1::ListPodResourcesRequest(), &list);
      }));
  const std::shared_ptr<const Offer> offer = catalogue_.Current();
  tenancy::AssignmentView view;
  for (const v1::PodResources& pod : list.pod_resources()) {
    view.whole = view.whole || !IsStatic(pod, options_.node_name);
    const tenancy::Owner owner{kPodOwner, absl::StrCat(pod.namespace_(), "/", pod.name())};
    for (const v1::ContainerResources& container : pod.containers()) {
      for (const v1::ContainerDevices& entry : container.devices()) {
        AddEntry(*offer, entry, owner, view.devices);
      }
    }
  }
  // Replaced meanwhile: nobody can tell which of the two answered.
  if (!socket || socket != StatSocket(options_.socket)) return view;
  if (view.whole) knowing_ = socket;
  view.whole = socket == knowing_;
  return view;
}

Result<bool> PodResourcesClient::StillHas(const tenancy::Owner& owner,
                                          std::span<const PciAddress> devices) {
  const size_t slash = owner.key.find('/');
  if (owner.kind != kPodOwner || slash == std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat("kubelet can't be asked for ", owner.kind, " ",
                                                   owner.key, ": it is no namespace/pod"));
  }
  v1::GetPodResourcesRequest request;
  request.set_pod_namespace(owner.key.substr(0, slash));
  request.set_pod_name(owner.key.substr(slash + 1));
  v1::GetPodResourcesResponse answer;
  const Status status = CallKubelet(
      options_, clock_, [&](v1::PodResourcesLister::Stub& kubelet, grpc::ClientContext& context) {
        return kubelet.Get(&context, request, &answer);
      });
  if (IsNoSuchPod(status, request)) return false;
  RETURN_IF_ERROR(status);
  return HasOneOf(*catalogue_.Current(), answer.pod_resources(), devices);
}

}  // namespace switchyard::kube
