// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "k8s_deviceplugin_v1beta1.pb.h"
#include "kube/admission.h"

namespace switchyard::kube {
namespace {

using Ids = google::protobuf::RepeatedPtrField<std::string>;

// Of the available ids. One that is not ours is no candidate; the others are.
std::vector<PciAddress> KnownAddresses(const Resource& resource, const Ids& ids) {
  std::vector<PciAddress> addresses;
  addresses.reserve(static_cast<size_t>(ids.size()));
  for (const std::string& id : ids) {
    const OfferedDevice* device = resource.FindById(id);
    if (device != nullptr) addresses.push_back(device->address);
  }
  return addresses;
}

// Addresses of `ids`; on an unknown one, it is named in the error.
Result<std::vector<PciAddress>> ToAddresses(const Resource& resource, const Ids& ids) {
  std::vector<PciAddress> addresses;
  addresses.reserve(static_cast<size_t>(ids.size()));
  for (const std::string& id : ids) {
    const OfferedDevice* device = resource.FindById(id);
    if (device == nullptr) return absl::NotFoundError(absl::StrCat("unknown device id ", id));
    addresses.push_back(device->address);
  }
  return addresses;
}

Result<tenancy::Preference> Ask(const AdmissionParts& parts, const Resource& resource,
                                const v1beta1::ContainerPreferredAllocationRequest& request) {
  const auto available = KnownAddresses(resource, request.available_deviceids());
  ASSIGN_OR_RETURN(const auto must_include,
                   ToAddresses(resource, request.must_include_deviceids()));
  return parts.tenancies->Prefer(available, must_include, request.allocation_size());
}

void Report(const AdmissionParts& parts, const Resource& resource, int container,
            const v1beta1::ContainerPreferredAllocationRequest& request,
            const tenancy::Preference& preference, const Ids& chosen) {
  Event event{"preferred", Severity::kInfo, preference.reason, {}};
  event.fields.reserve(11);
  event.fields.emplace_back("resource", resource.name);
  event.fields.emplace_back("container", absl::StrCat(container));
  event.fields.emplace_back("available", absl::StrJoin(request.available_deviceids(), ","));
  event.fields.emplace_back("must_include", absl::StrJoin(request.must_include_deviceids(), ","));
  event.fields.emplace_back("size", absl::StrCat(request.allocation_size()));
  if (preference.partition.has_value()) {
    event.fields.emplace_back("partition", absl::StrCat(*preference.partition));
    event.fields.emplace_back("active", preference.active ? "true" : "false");
  }
  event.fields.emplace_back("candidates", absl::StrCat(preference.candidates));
  event.fields.emplace_back("chosen", absl::StrJoin(chosen, ","));
  if (!preference.unmapped.empty()) {
    event.fields.emplace_back(
        "unmapped", absl::StrJoin(preference.unmapped, ",", [](std::string* out, const auto& gpu) {
          out->append(gpu.ToString());
        }));
  }
  parts.events->Report(event);
}

}  // namespace

void Prefer(const AdmissionParts& parts, const Resource& resource,
            const v1beta1::PreferredAllocationRequest& request,
            v1beta1::PreferredAllocationResponse& response) {
  const auto admission = parts.tenancies->BeginAdmission();
  for (int i = 0; i < request.container_requests_size(); ++i) {
    const auto& container = request.container_requests(i);
    Ids& chosen = *response.add_container_responses()->mutable_deviceids();
    Result<tenancy::Preference> preference = Ask(parts, resource, container);
    if (!preference.ok()) {
      preference = tenancy::Preference{};
      preference->reason = absl::StrCat("no preference: ", preference.status().message());
    }
    for (const PciAddress& address : preference->devices) {
      const OfferedDevice* device = resource.FindByAddress(address);
      if (device != nullptr) *chosen.Add() = device->id;
    }
    Report(parts, resource, i, container, *preference, chosen);
  }
}

}  // namespace switchyard::kube
