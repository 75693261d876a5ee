// SPDX-License-Identifier: Apache-2.0
#include "agent/enforce_gauges.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_split.h"
#include "tenancy/refusal.h"

namespace switchyard::agent {
namespace {

using tenancy::TenancyState;

Gauge One(std::string name, std::string help, double value) {
  return {std::move(name), std::move(help), {{{}, value}}};
}

Gauge Labelled(std::string name, std::string help, const std::string& label,
               const std::map<std::string, double>& values) {
  Gauge gauge{std::move(name), std::move(help), {}};
  for (const auto& [key, value] : values) gauge.samples.push_back({{{label, key}}, value});
  return gauge;
}

Gauge Counter(Gauge gauge) {
  gauge.counter = true;
  return gauge;
}

Gauge Tenancies(const tenancy::EnforceView& view) {
  std::map<std::string, double> by_state;
  for (const auto state : {TenancyState::kPlanned, TenancyState::kActivating, TenancyState::kActive,
                           TenancyState::kReleasing}) {
    by_state[std::string(tenancy::TenancyStateName(state))] = 0;
  }
  for (const tenancy::TenancyView& one : view.tenancies)
    ++by_state[std::string(tenancy::TenancyStateName(one.record.state))];
  return Labelled("switchyard_tenancies", "Tenancies by state.", "state", by_state);
}

// Each partition once, by what matters most to who asks for it.
Gauge Partitions(const tenancy::EnforceView& view) {
  std::map<std::string, double> by_use = {
      {"owned", 0}, {"foreign", 0}, {"blocked", 0}, {"free", 0}};
  for (const tenancy::PartitionView& one : view.partitions) {
    const bool blocked = !one.blocked_by_tenancies.empty() || !one.blocked_by_partitions.empty() ||
                         one.modules.Overlaps(view.dirty);
    ++by_use[one.tenancy ? "owned" : one.foreign ? "foreign" : blocked ? "blocked" : "free"];
  }
  return Labelled("switchyard_partitions",
                  "Partitions by use; foreign: active, of no tenancy; blocked: something overlaps.",
                  "use", by_use);
}

Gauge Refusals(const tenancy::EnforceView& view) {
  std::map<std::string, double> by_reason;
  for (int i = 0; i < tenancy::kRefusals; ++i)
    by_reason[std::string(tenancy::RefusalName(static_cast<tenancy::Refusal>(i)))] = 0;
  for (const auto& [reason, count] : view.refusals) by_reason[reason] = static_cast<double>(count);
  return Counter(Labelled("switchyard_refusals_total",
                          "Requests for GPUs that were refused, by reason.", "reason", by_reason));
}

Gauge Failures(const tenancy::EnforceView& view) {
  Gauge gauge{"switchyard_fabric_failures_total",
              "Changes that Fabric Manager failed, by change and code.",
              {}};
  for (const auto& [key, count] : view.fabric_failures) {
    const std::pair<std::string, std::string> words = absl::StrSplit(key, absl::MaxSplits(' ', 1));
    gauge.samples.push_back(
        {{{"change", words.first}, {"code", words.second}}, static_cast<double>(count)});
  }
  return Counter(std::move(gauge));
}

}  // namespace

std::vector<Gauge> MakeEnforceGauges(const tenancy::EnforceView& view,
                                     std::optional<std::uint64_t> journal_bytes) {
  double orphaned = 0;
  double uncertain = 0;
  for (const tenancy::TenancyView& one : view.tenancies) {
    orphaned += one.orphaned ? 1 : 0;
    uncertain += one.uncertain ? 1 : 0;
  }
  std::map<std::string, double> actions;
  for (const auto& [action, count] : view.actions) actions[action] = static_cast<double>(count);
  std::vector<Gauge> gauges = {
      Tenancies(view),
      One("switchyard_tenancies_orphaned",
          "Tenancies that kubelet lists for no pod while a process has a GPU of them open.",
          orphaned),
      One("switchyard_tenancies_uncertain",
          "Tenancies of which nobody knows what became of the last change.", uncertain),
      Partitions(view),
      One("switchyard_modules_dirty",
          "GPUs of tenancies whose partition Fabric Manager lost; no other tenant gets them.",
          static_cast<double>(view.dirty.size())),
      One("switchyard_draining", "1 while the operator lets no new tenancy begin.",
          view.draining ? 1 : 0),
      One("switchyard_journal_usable", "1 if the journal can be read and written.",
          view.journal_problem.empty() ? 1 : 0),
      One("switchyard_journal_records", "Tenancies in the journal, but for damaged records.",
          static_cast<double>(view.tenancies.size())),
      Counter(One("switchyard_activations_total", "Partitions that were activated.",
                  static_cast<double>(view.activations))),
      Counter(One("switchyard_deactivations_total", "Partitions that were deactivated.",
                  static_cast<double>(view.deactivations))),
      Failures(view),
      Refusals(view),
      Counter(Labelled("switchyard_reconciler_actions_total", "What the reconciler did, by action.",
                       "action", actions))};
  if (journal_bytes) {
    gauges.push_back(One("switchyard_journal_bytes", "Size of the state file and its log.",
                         static_cast<double>(*journal_bytes)));
  }
  return gauges;
}

}  // namespace switchyard::agent
