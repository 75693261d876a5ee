// SPDX-License-Identifier: Apache-2.0
#include "sim/kubelet/device_chooser.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace switchyard::sim {
namespace {

struct ByAffinity {
  DeviceIds aligned;
  DeviceIds unaligned;
  DeviceIds no_affinity;
};

ByAffinity FilterByAffinity(const ChoiceInput& input) {
  ByAffinity out;
  const bool any_topology =
      std::any_of(input.devices.begin(), input.devices.end(),
                  [](const auto& device) { return !device.second.numa_nodes.empty(); });
  if (!any_topology || !input.numa_affinity) {
    out.no_affinity = input.available;
    return out;
  }
  for (const std::string& id : input.available) {
    const auto device = input.devices.find(id);
    if (device == input.devices.end() || device->second.numa_nodes.empty()) {
      out.no_affinity.insert(id);
      continue;
    }
    // A device of several nodes is aligned if one of them is.
    const std::vector<int>& nodes = device->second.numa_nodes;
    const bool aligned = std::any_of(nodes.begin(), nodes.end(),
                                     [&](int node) { return input.numa_affinity->contains(node); });
    (aligned ? out.aligned : out.unaligned).insert(id);
  }
  return out;
}

DeviceIds Union(const DeviceIds& a, const DeviceIds& b) {
  DeviceIds both = a;
  both.insert(b.begin(), b.end());
  return both;
}

DeviceIds Intersection(const DeviceIds& a, const DeviceIds& b) {
  DeviceIds both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::inserter(both, both.end()));
  return both;
}

class Chooser {
 public:
  Chooser(const ChoiceInput& input, const PreferFunction& prefer, const ReserveFunction& reserve,
          Random& random)
      : input_(input),
        prefer_(prefer),
        reserve_(reserve),
        random_(random),
        needed_(input.required) {}

  Result<DeviceIds> Choose() {
    if (Take(input_.reusable)) return taken_;
    if (static_cast<int>(input_.available.size()) < needed_) {
      return absl::ResourceExhaustedError(
          absl::StrCat("requested number of devices unavailable for ", input_.resource,
                       ". Requested: ", needed_, ", Available: ", input_.available.size()));
    }
    const ByAffinity by_affinity = FilterByAffinity(input_);
    return needed_ < static_cast<int>(by_affinity.aligned.size()) ? ChooseAligned(by_affinity)
                                                                  : ChooseBeyond(by_affinity);
  }

 private:
  // More aligned devices than needed: the plugin may say which.
  Result<DeviceIds> ChooseAligned(const ByAffinity& by_affinity) {
    ASSIGN_OR_RETURN(const DeviceIds preferred, Ask(by_affinity.aligned));
    if (Take(Intersection(preferred, by_affinity.aligned))) return taken_;
    if (Take(by_affinity.aligned)) return taken_;
    return TooFew();
  }

  // All aligned ones are needed, so they are not asked about; the plugin may say which others.
  Result<DeviceIds> ChooseBeyond(const ByAffinity& by_affinity) {
    if (Take(by_affinity.aligned)) return taken_;
    ASSIGN_OR_RETURN(const DeviceIds preferred, Ask(input_.available));
    if (Take(Intersection(preferred, input_.available))) return taken_;
    if (Take(by_affinity.unaligned)) return taken_;
    if (Take(by_affinity.no_affinity)) return taken_;
    return TooFew();
  }

  // Only if an init container's devices were taken for free ones.
  Result<DeviceIds> TooFew() const {
    return absl::InternalError(absl::StrCat("fewer devices of ", input_.resource,
                                            " than counted. Requested: ", input_.required,
                                            ", Got: ", taken_.size()));
  }

  // The answer is only a set: its order, its size and unknown ids in it count for nothing.
  Result<DeviceIds> Ask(const DeviceIds& from) {
    if (!prefer_) return DeviceIds{};
    ASSIGN_OR_RETURN(const std::vector<std::string> answer,
                     prefer_({.available = InRandomOrder(Union(from, taken_), random_),
                              .must_include = InRandomOrder(taken_, random_),
                              .size = input_.required}));
    return DeviceIds(answer.begin(), answer.end());
  }

  // Takes devices at random; true once there are enough.
  bool Take(const DeviceIds& from) {
    for (const std::string& id : InRandomOrder(from, random_)) {
      if (!taken_.insert(id).second) continue;
      reserve_(id);
      if (--needed_ == 0) return true;
    }
    return false;
  }

  const ChoiceInput& input_;
  const PreferFunction& prefer_;
  const ReserveFunction& reserve_;
  Random& random_;
  int needed_;
  DeviceIds taken_;
};

}  // namespace

Result<DeviceIds> ChooseDevices(const ChoiceInput& input, const PreferFunction& prefer,
                                const ReserveFunction& reserve, Random& random) {
  return Chooser(input, prefer, reserve, random).Choose();
}

std::vector<std::string> InRandomOrder(const DeviceIds& ids, Random& random) {
  std::vector<std::string> shuffled(ids.begin(), ids.end());
  std::shuffle(shuffled.begin(), shuffled.end(), random);
  return shuffled;
}

}  // namespace switchyard::sim
