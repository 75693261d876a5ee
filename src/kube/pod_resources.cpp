// SPDX-License-Identifier: Apache-2.0
#include "kube/pod_resources.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "k8s_podresources_v1.grpc.pb.h"
#include "kube/grpc_client.h"

namespace switchyard::kube {
namespace {

// List holds every pod of the node, also those without devices.
constexpr int kMaxAnswer = 16 * 1024 * 1024;

// One of several entries of a resource: all of them count.
void AddEntry(const Offer& offer, const v1::ContainerDevices& entry, const tenancy::Owner& owner,
              tenancy::Assignments& assignments) {
  const Resource* resource = offer.Find(entry.resource_name());
  if (resource == nullptr) return;
  for (const std::string& id : entry.device_ids()) {
    const OfferedDevice* device = resource->FindById(id);
    if (device == nullptr) continue;
    // The whole group is theirs. Of two pods (kubelet before 1.34 lists ended ones too) the first
    // one is kept: taken is taken.
    for (const PciAddress& member : device->members) assignments.try_emplace(member, owner);
  }
}

}  // namespace

PodResourcesClient::PodResourcesClient(Options options, const Catalogue& catalogue)
    : options_(std::move(options)), catalogue_(catalogue) {}

Result<tenancy::Assignments> PodResourcesClient::Read() {
  grpc::ClientContext context;
  SetTimeout(context, options_.timeout);
  v1::ListPodResourcesResponse list;
  const grpc::Status status = v1::PodResourcesLister::NewStub(DialUnix(options_.socket, kMaxAnswer))
                                  ->List(&context, v1::ListPodResourcesRequest(), &list);
  if (!status.ok())
    return Annotate(FromGrpc(status), absl::StrCat("kubelet's PodResources at ", options_.socket));
  const std::shared_ptr<const Offer> offer = catalogue_.Current();
  tenancy::Assignments assignments;
  for (const v1::PodResources& pod : list.pod_resources()) {
    const tenancy::Owner owner{"pod", absl::StrCat(pod.namespace_(), "/", pod.name())};
    for (const v1::ContainerResources& container : pod.containers()) {
      for (const v1::ContainerDevices& entry : container.devices()) {
        AddEntry(*offer, entry, owner, assignments);
      }
    }
  }
  return assignments;
}

}  // namespace switchyard::kube
