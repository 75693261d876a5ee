// SPDX-License-Identifier: Apache-2.0
#include "sim/kubelet/topology.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace switchyard::sim {
namespace {

constexpr char kRefused[] = "Resources cannot be allocated with Topology locality";

bool IsOn(const PluginDevice& device, const NumaNodes& nodes) {
  return std::any_of(device.numa_nodes.begin(), device.numa_nodes.end(),
                     [&](int node) { return nodes.contains(node); });
}

// How many of `ids` are on the nodes. An id that is no device any more is on none.
int CountOn(const std::map<std::string, PluginDevice>& devices, const DeviceIds& ids,
            const NumaNodes& nodes) {
  return static_cast<int>(std::count_if(ids.begin(), ids.end(), [&](const std::string& id) {
    const auto device = devices.find(id);
    return device != devices.end() && IsOn(device->second, nodes);
  }));
}

std::vector<NumaNodes> Subsets(const NumaNodes& all) {
  std::vector<NumaNodes> subsets = {{}};
  for (const int node : all) {
    for (size_t i = 0, before = subsets.size(); i < before; ++i) {
      NumaNodes larger = subsets[i];
      larger.insert(node);
      subsets.push_back(std::move(larger));
    }
  }
  subsets.erase(subsets.begin());
  return subsets;
}

// As kubelet: preferred ones first, then those of fewer nodes, then those of lower numbers.
bool IsBetter(const TopologyHint& a, const TopologyHint& b) {
  if (a.preferred != b.preferred) return a.preferred;
  if (!a.nodes || !b.nodes) return a.nodes.has_value() && !b.nodes.has_value();
  if (a.nodes->size() != b.nodes->size()) return a.nodes->size() < b.nodes->size();
  return std::lexicographical_compare(a.nodes->rbegin(), a.nodes->rend(), b.nodes->rbegin(),
                                      b.nodes->rend());
}

// The nodes that both have; nullopt if there are none.
std::optional<TopologyHint> Combine(const TopologyHint& a, const TopologyHint& b) {
  TopologyHint both{a.nodes, a.preferred && b.preferred};
  if (!both.nodes) {
    both.nodes = b.nodes;
  } else if (b.nodes) {
    std::erase_if(*both.nodes, [&](int node) { return !b.nodes->contains(node); });
    if (both.nodes->empty()) return std::nullopt;
  }
  return both;
}

}  // namespace

Result<TopologyPolicy> ParseTopologyPolicy(absl::string_view name) {
  if (name.empty() || name == "none") return TopologyPolicy::kNone;
  if (name == "best-effort") return TopologyPolicy::kBestEffort;
  if (name == "restricted") return TopologyPolicy::kRestricted;
  if (name == "single-numa-node") return TopologyPolicy::kSingleNumaNode;
  return absl::InvalidArgumentError(
      absl::StrCat("topology manager policy \"", name,
                   "\": must be none, best-effort, restricted or single-numa-node"));
}

TopologyHints MakeHints(const std::map<std::string, PluginDevice>& devices,
                        const DeviceIds& available, const DeviceIds& reusable, int required) {
  NumaNodes all;
  for (const auto& [id, device] : devices) {
    all.insert(device.numa_nodes.begin(), device.numa_nodes.end());
  }
  if (all.empty()) return {{.nodes = {}, .preferred = true}};
  size_t fewest = all.size();
  TopologyHints hints;
  for (const NumaNodes& nodes : Subsets(all)) {
    const auto present = std::count_if(devices.begin(), devices.end(), [&](const auto& device) {
      return IsOn(device.second, nodes);
    });
    if (present >= required) fewest = std::min(fewest, nodes.size());
    const int reused = CountOn(devices, reusable, nodes);
    if (reused < static_cast<int>(reusable.size())) continue;
    if (reused + CountOn(devices, available, nodes) < required) continue;
    hints.push_back({.nodes = nodes, .preferred = false});
  }
  for (TopologyHint& hint : hints) hint.preferred = hint.nodes->size() == fewest;
  return hints;
}

Result<std::optional<NumaNodes>> MergeHints(TopologyPolicy policy,
                                            const std::vector<TopologyHints>& all) {
  TopologyHints merged = {{.nodes = {}, .preferred = true}};
  for (const TopologyHints& hints : all) {
    TopologyHints next;
    // No hint at all: any node, but not as wished.
    for (const TopologyHint& hint : hints.empty() ? TopologyHints{{}} : hints) {
      const bool is_single = hint.preferred && (!hint.nodes || hint.nodes->size() == 1);
      if (policy == TopologyPolicy::kSingleNumaNode && !is_single) continue;
      for (const TopologyHint& before : merged) {
        if (const auto both = Combine(before, hint)) next.push_back(*both);
      }
    }
    merged = std::move(next);
  }
  const auto best = std::min_element(merged.begin(), merged.end(), IsBetter);
  const bool preferred = best != merged.end() && best->preferred;
  if (!preferred &&
      (policy == TopologyPolicy::kRestricted || policy == TopologyPolicy::kSingleNumaNode)) {
    return absl::FailedPreconditionError(kRefused);
  }
  return best == merged.end() ? std::nullopt : best->nodes;
}

bool IsTopologyError(const Status& status) { return status.message() == kRefused; }

}  // namespace switchyard::sim
