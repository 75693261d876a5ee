// SPDX-License-Identifier: Apache-2.0
#pragma once

// kubelet's two questions at admission and the one before a container starts, translated: device
// ids to addresses, the tenancies asked, the answer in the contract's words. Any thread.

#include "base/clock.h"
#include "base/event.h"
#include "base/status.h"
#include "kube/catalogue.h"
#include "kube/contract.h"
#include "tenancy/tenancies.h"

namespace v1beta1 {
class AllocateRequest;
class AllocateResponse;
class PreStartContainerRequest;
class PreferredAllocationRequest;
class PreferredAllocationResponse;
}  // namespace v1beta1

namespace switchyard::kube {

// Borrowed for the call.
struct AdmissionParts {
  Clock* clock = nullptr;
  EventSink* events = nullptr;
  const Contract* contract = nullptr;
  tenancy::Tenancies* tenancies = nullptr;
};

// Never fails: an error here would fail the pod. An empty preference leaves the choice to kubelet;
// the event says why.
void Prefer(const AdmissionParts& parts, const Resource& resource,
            const v1beta1::PreferredAllocationRequest& request,
            v1beta1::PreferredAllocationResponse& response);

// All containers or none. Measured as "allocate", by outcome. kubelet fails the pod for ever with
// the error's text, so it says what to do.
[[nodiscard]] Status Allocate(const AdmissionParts& parts, const Resource& resource,
                              const v1beta1::AllocateRequest& request,
                              v1beta1::AllocateResponse& response);

// May these devices' container start now? The error's text stands in the container's status, and
// kubelet asks again (about every 10 s), so it says what is waited for or what to do. kubelet gives
// up on an answer after 30 s. Events pre_start, pre_start_failed.
[[nodiscard]] Status PreStart(const AdmissionParts& parts, const Resource& resource,
                              const v1beta1::PreStartContainerRequest& request);

}  // namespace switchyard::kube
