// SPDX-License-Identifier: Apache-2.0
#pragma once

// The state of the agent as gauges, at the moment of a scrape. Pure.

#include <vector>

#include "agent/metrics.h"
#include "kube/device_plugins.h"
#include "pci/inventory.h"
#include "tenancy/tenancies.h"

namespace switchyard::agent {

// `inventory` may be null: nothing was scanned yet.
[[nodiscard]] std::vector<Gauge> MakeGauges(
    tenancy::FabricMode mode, const tenancy::FabricView& fabric,
    const std::vector<kube::DevicePlugins::ResourceStatus>& resources,
    const pci::Inventory* inventory);

}  // namespace switchyard::agent
