// SPDX-License-Identifier: Apache-2.0
#pragma once

// An Allocate's answer as the message it came in, and back: of the wire and of the checkpoint.
// Pure; any thread.

#include "sim/kubelet/endpoint.h"

namespace v1beta1 {
class ContainerAllocateResponse;
}

namespace switchyard::sim {

[[nodiscard]] AllocateAnswer ToAnswer(const v1beta1::ContainerAllocateResponse& message);
void ToMessage(const AllocateAnswer& answer, v1beta1::ContainerAllocateResponse& message);

}  // namespace switchyard::sim
