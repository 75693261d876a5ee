// SPDX-License-Identifier: Apache-2.0
#pragma once

// `enforce` as metrics, at the moment of a scrape: tenancies, whose partitions are, what was
// changed, refused and released since the start. Pure. Labels are bounded: see EnforceView.

#include <cstdint>
#include <optional>
#include <vector>

#include "agent/metrics.h"
#include "tenancy/enforce_view.h"

namespace switchyard::agent {

// `journal_bytes`: of the state file with its write-ahead log; none: it can't be seen.
[[nodiscard]] std::vector<Gauge> MakeEnforceGauges(const tenancy::EnforceView& view,
                                                   std::optional<std::uint64_t> journal_bytes);

}  // namespace switchyard::agent
