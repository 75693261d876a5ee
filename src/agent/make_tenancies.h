// SPDX-License-Identifier: Apache-2.0
#pragma once

// The core made from the configuration: what each key means to it. Borrows everything in `parts`,
// which must outlive the core.

#include <memory>

#include "agent/config.h"
#include "base/clock.h"
#include "base/event.h"
#include "fabric/fabric_control.h"
#include "store/store.h"
#include "tenancy/tenancies.h"

namespace switchyard::agent {

struct TenanciesParts {
  Clock* clock = nullptr;
  EventSink* events = nullptr;
  store::Store* store = nullptr;            // may be null
  fabric::FabricControl* fabric = nullptr;  // null when the fabric is off
};

[[nodiscard]] std::unique_ptr<tenancy::Tenancies> MakeTenancies(const Config& config,
                                                                const TenanciesParts& parts);

}  // namespace switchyard::agent
