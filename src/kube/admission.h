// SPDX-License-Identifier: Apache-2.0
#pragma once

// kubelet's two questions at admission, translated: device ids to addresses, the tenancies asked,
// the answer in the contract's words. Any thread.

#include "base/event.h"
#include "base/status.h"
#include "kube/catalogue.h"
#include "kube/contract.h"
#include "tenancy/tenancies.h"

namespace v1beta1 {
class AllocateRequest;
class AllocateResponse;
class PreferredAllocationRequest;
class PreferredAllocationResponse;
}  // namespace v1beta1

namespace switchyard::kube {

// Borrowed for the call.
struct AdmissionParts {
  EventSink* events = nullptr;
  const Contract* contract = nullptr;
  tenancy::Tenancies* tenancies = nullptr;
};

// Never fails: an error here would fail the pod. An empty preference leaves the choice to kubelet;
// the event says why.
void Prefer(const AdmissionParts& parts, const Resource& resource,
            const v1beta1::PreferredAllocationRequest& request,
            v1beta1::PreferredAllocationResponse& response);

// All containers or none. kubelet fails the pod for ever with the error's text, so it says what to
// do.
[[nodiscard]] Status Allocate(const AdmissionParts& parts, const Resource& resource,
                              const v1beta1::AllocateRequest& request,
                              v1beta1::AllocateResponse& response);

}  // namespace switchyard::kube
