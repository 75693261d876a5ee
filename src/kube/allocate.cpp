// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "k8s_deviceplugin_v1beta1.pb.h"
#include "kube/admission.h"

namespace switchyard::kube {
namespace {

using Ids = google::protobuf::RepeatedPtrField<std::string>;

// Adds the devices of one container to `taken`, those of all containers of the call.
Status Resolve(const Resource& resource, const Ids& ids, std::vector<const OfferedDevice*>& taken) {
  if (ids.empty()) return absl::InvalidArgumentError("no device ids: nothing can be allocated");
  for (const std::string& id : ids) {
    const OfferedDevice* device = resource.FindById(id);
    if (device == nullptr) {
      return absl::NotFoundError(
          absl::StrCat("device id ", id,
                       " is not in the present device list: kubelet asked from "
                       "an older one; delete the pod, its controller makes a new one"));
    }
    if (std::find(taken.begin(), taken.end(), device) != taken.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("device id ", id,
                       " is asked for twice: one device can't be given to two "
                       "containers or twice to one; delete the pod, and report it if it returns"));
    }
    taken.push_back(device);
  }
  return OkStatus();
}

// Kata's ids are numbers of the kernel's, which change over a reboot or a rebind: the one kubelet
// knows must still be the same device.
Status CheckId(const Contract& contract, const Resource& resource, const OfferedDevice& listed,
               const tenancy::GrantedDevice& granted) {
  DeviceNumbers numbers{granted.address, granted.iommu_group, std::nullopt};
  for (const tenancy::GrantedFunction& function : granted.functions) {
    if (function.address == granted.address) numbers.cdev = function.cdev;
  }
  const auto now = contract.DeviceId(numbers, resource.node_backend);
  if (now == listed.id) return OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "device id ", listed.id, " was ", listed.address.ToString(), ", which now has ",
      now.has_value() ? absl::StrCat("id ", *now) : std::string("no number"),
      ": the next scan sends a new device list; delete the pod, its controller makes a new one"));
}

Result<tenancy::Grant> Acquire(const AdmissionParts& parts, const Resource& resource,
                               const Ids& ids, absl::Duration asked,
                               std::vector<const OfferedDevice*>& taken) {
  const size_t first = taken.size();
  RETURN_IF_ERROR(Resolve(resource, ids, taken));
  std::vector<PciAddress> addresses;
  addresses.reserve(taken.size() - first);
  for (size_t i = first; i < taken.size(); ++i) addresses.push_back(taken[i]->address);
  ASSIGN_OR_RETURN(tenancy::Grant grant, parts.tenancies->Acquire(addresses, asked));
  absl::Cleanup release = [&] { parts.tenancies->Release(grant.id); };
  for (size_t i = 0; i < grant.devices.size() && first + i < taken.size(); ++i) {
    RETURN_IF_ERROR(CheckId(*parts.contract, resource, *taken[first + i], grant.devices[i]));
  }
  std::move(release).Cancel();
  return grant;
}

void Fill(ContainerAnswer answer, v1beta1::ContainerAllocateResponse& response) {
  for (auto& [name, value] : answer.environment)
    (*response.mutable_envs())[name] = std::move(value);
  for (std::string& node : answer.nodes) {
    v1beta1::DeviceSpec& device = *response.add_devices();
    device.set_container_path(node);
    device.set_host_path(std::move(node));
    device.set_permissions(kNodePermissions);
  }
}

void Report(const AdmissionParts& parts, const Resource& resource, int container, const Ids& ids,
            const tenancy::Grant& grant) {
  Event event{"allocate", Severity::kInfo, "devices allocated", {}};
  event.fields.reserve(5);
  event.fields.emplace_back("resource", resource.name);
  event.fields.emplace_back("container", absl::StrCat(container));
  event.fields.emplace_back("ids", absl::StrJoin(ids, ","));
  event.fields.emplace_back(
      "pci", absl::StrJoin(grant.devices, ",", [](std::string* out, const auto& device) {
        out->append(device.address.ToString());
      }));
  if (grant.partition.has_value())
    event.fields.emplace_back("partition", absl::StrCat(*grant.partition));
  parts.events->Report(event);
}

Status Refuse(const AdmissionParts& parts, const Resource& resource, int container, const Ids& ids,
              const Status& why) {
  parts.events->Report({"allocate_failed",
                        Severity::kError,
                        std::string(why.message()),
                        {{"resource", resource.name},
                         {"container", absl::StrCat(container)},
                         {"ids", absl::StrJoin(ids, ",")}}});
  return Annotate(why, absl::StrCat(resource.name, ", container ", container));
}

Status AllocateAll(const AdmissionParts& parts, const Resource& resource,
                   const v1beta1::AllocateRequest& request, v1beta1::AllocateResponse& response) {
  if (request.container_requests().empty())
    return absl::InvalidArgumentError("an Allocate without containers: nothing can be allocated");
  const auto admission = parts.tenancies->BeginAdmission();
  std::vector<const OfferedDevice*> taken;
  std::vector<tenancy::Grant> grants;
  absl::Cleanup release = [&] {
    for (const tenancy::Grant& grant : grants) parts.tenancies->Release(grant.id);
  };
  for (int i = 0; i < request.container_requests_size(); ++i) {
    const Ids& ids = request.container_requests(i).devices_ids();
    Result<tenancy::Grant> grant = Acquire(parts, resource, ids, admission.asked(), taken);
    if (!grant.ok()) return Refuse(parts, resource, i, ids, grant.status());
    Fill(parts.contract->Answer(resource.name, *grant, resource.node_backend),
         *response.add_container_responses());
    grants.push_back(*std::move(grant));
  }
  std::move(release).Cancel();
  for (int i = 0; i < request.container_requests_size(); ++i) {
    Report(parts, resource, i, request.container_requests(i).devices_ids(),
           grants[static_cast<size_t>(i)]);
  }
  return OkStatus();
}

}  // namespace

Status Allocate(const AdmissionParts& parts, const Resource& resource,
                const v1beta1::AllocateRequest& request, v1beta1::AllocateResponse& response) {
  const absl::Duration began = parts.clock->Monotonic();
  Status status = AllocateAll(parts, resource, request, response);
  parts.events->Measure({"allocate",
                         parts.clock->Monotonic() - began,
                         {{"outcome", status.ok() ? "granted" : "refused"}}});
  return status;
}

}  // namespace switchyard::kube
