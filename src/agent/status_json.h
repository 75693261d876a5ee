// SPDX-License-Identifier: Apache-2.0
#pragma once

// The operator socket's documents: /v1/fabric and /v1/resources. Pure. `switchyard partitions` and
// `plan` read the first; its keys are a contract.

#include <string>
#include <vector>

#include "kube/catalogue.h"
#include "kube/device_plugins.h"
#include "pci/inventory.h"
#include "tenancy/tenancies.h"

namespace switchyard::agent {

// {"mode","known","up","error","readAt","partitions":[{"id","active","modules","complete"}],
//  "map":[{"address","module","sources","origin"}],"mapErrors","busy","usable","numaNodes"}.
// usable = modules mapped to a ready device of `inventory` (null: none).
[[nodiscard]] std::string FabricJson(tenancy::FabricMode mode, const tenancy::FabricView& view,
                                     const pci::Inventory* inventory);

// {"resources":[{"name","streaming","socket","problem","devices":[{"id","address","healthy",
//  "problem","numaNode"}]}]}
[[nodiscard]] std::string ResourcesJson(
    const kube::Offer& offer, const std::vector<kube::DevicePlugins::ResourceStatus>& status);

}  // namespace switchyard::agent
