// SPDX-License-Identifier: Apache-2.0
#pragma once

// The operator socket's documents about `enforce`: /v1/tenancies and the reconciler's plan. Pure.
// `switchyard tenancies`, `partitions`, `release`, `drain` and `reconcile` read them; their keys
// are a contract.

#include <string>
#include <vector>

#include "tenancy/enforce_view.h"

namespace switchyard::agent {

// {"fabricUp","fabricProblem","journalProblem","podsUnknown","draining","dirty",
//  "tenancies":[{"id","state","owner":{"kind","key"}|null,"untilReleased","adopted","partition"|null,
//    "modules","devices","begun","changed","active","listed","unusedForSeconds"|null,"uncertain"}],
//  "partitions":[{"id","modules","active","tenancy"|null,"foreign","staleSince"|null,
//    "blockedByTenancies","blockedByPartitions"}]}. Problems are empty where there is none.
[[nodiscard]] std::string EnforceJson(const tenancy::EnforceView& view);

// {"actions":[{"action","tenancy"|null,"partition"|null,"modules","why"}]}
[[nodiscard]] std::string PlanJson(const std::vector<tenancy::PlannedAction>& plan);

}  // namespace switchyard::agent
