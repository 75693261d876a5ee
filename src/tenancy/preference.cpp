// SPDX-License-Identifier: Apache-2.0
#include "tenancy/preference.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "tenancy/numa_preference.h"
#include "tenancy/picture.h"

namespace switchyard::tenancy {
namespace {

Preference None(Preference preference, std::string reason) {
  preference.reason = std::move(reason);
  return preference;
}

// The device under which kubelet offered each module; a device of two GPUs stands for both.
using Offered = std::array<std::optional<PciAddress>, fabric::kMaxModule + 1>;

std::vector<PciAddress> DevicesOf(fabric::ModuleSet modules, const Offered& offered) {
  std::vector<PciAddress> devices;
  for (fabric::ModuleId m = fabric::kMinModule; m <= fabric::kMaxModule; ++m) {
    const auto& address = offered[static_cast<size_t>(m)];
    if (!modules.Contains(m) || !address) continue;
    if (std::find(devices.begin(), devices.end(), *address) == devices.end()) {
      devices.push_back(*address);
    }
  }
  return devices;
}

std::string NoTable(const FabricKnowledge& fabric) {
  if (fabric.error.empty()) return "no partition table is known yet: Fabric Manager was not read";
  return absl::StrCat("no partition table is known: ", fabric.error);
}

// A table from before is as good as FM's word was then, and the log must say so.
std::string Age(const FabricKnowledge& fabric) {
  if (fabric.up) return "";
  return absl::StrCat("; by the partition list of ",
                      absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", fabric.read_at, absl::UTCTimeZone()),
                      ", Fabric Manager is not answering");
}

}  // namespace

Preference PreferPartition(const Picture& picture, fabric::ModuleSet held, fabric::Policy policy,
                           const PreferenceRequest& request, bool refuse_joining) {
  const FabricKnowledge& fabric = *picture.fabric;
  Preference preference;
  fabric::PlanRequest plan;
  Offered offered;
  for (const PciAddress& address : request.available) {
    const Picture::Device* device = picture.Find(address);
    if (device == nullptr || !device->mapped) {
      preference.unmapped.push_back(address);
      continue;
    }
    plan.available = plan.available | device->modules;
    for (fabric::ModuleId m = fabric::kMinModule; m <= fabric::kMaxModule; ++m) {
      if (device->modules.Contains(m)) offered[static_cast<size_t>(m)] = address;
    }
  }
  if (!fabric.known) return None(std::move(preference), NoTable(fabric));
  for (const PciAddress& address : request.must_include) {
    const Picture::Device* device = picture.Find(address);
    if (device == nullptr || !device->mapped) {
      return None(std::move(preference),
                  absl::StrCat(address.ToString(),
                               " must be included but has no module id; add it "
                               "to the module map (switchyard mapping set)"));
    }
    plan.must_include = plan.must_include | device->modules;
  }
  plan.table = &fabric.table;
  plan.size = request.size;
  const fabric::ModuleSet available = plan.available;
  const fabric::ModuleSet avoided = (request.avoid & available) - plan.must_include;
  plan.available = available - avoided;
  plan.busy = held - plan.available - plan.must_include;
  plan.usable = picture.usable;
  plan.numa_node = picture.numa_node;
  plan.shared_groups = picture.shared_groups;
  plan.policy = policy;
  plan.refuse_joining = refuse_joining;

  std::vector<fabric::Candidate> candidates = fabric::Rank(plan);
  std::string avoiding;
  if (!avoided.empty()) {
    avoiding = absl::StrCat("; modules ", avoided.ToString(),
                            " would be refused: held open, or in an unfinished change");
    if (candidates.empty()) {
      plan.available = available;
      plan.busy = held - plan.available - plan.must_include;
      candidates = fabric::Rank(plan);
    }
  }
  if (candidates.empty()) {
    return None(std::move(preference), absl::StrCat(fabric::WhyNone(plan), avoiding, Age(fabric)));
  }
  const fabric::Candidate& best = candidates.front();
  preference.devices = DevicesOf(best.partition->modules, offered);
  preference.partition = best.partition->id;
  preference.active = best.partition->active;
  preference.candidates = static_cast<int>(candidates.size());
  preference.reason = absl::StrCat(fabric::Why(plan, best), avoiding, Age(fabric));
  return preference;
}

Preference PreferNodes(const Picture& picture, const PreferenceRequest& request) {
  std::vector<NumaDevice> devices;
  devices.reserve(request.available.size());
  for (const PciAddress& address : request.available) {
    const Picture::Device* device = picture.Find(address);
    devices.push_back({address, device == nullptr ? std::nullopt : device->numa_node});
  }
  Preference preference;
  preference.devices = ChooseByNuma(devices, request.must_include, request.size);
  preference.reason = preference.devices.empty()
                          ? absl::StrCat("of ", request.available.size(), " available devices no ",
                                         request.size, " can be chosen with the ",
                                         request.must_include.size(), " that must be included")
                          : "fewest NUMA nodes, lowest addresses (fabric off)";
  return preference;
}

}  // namespace switchyard::tenancy
