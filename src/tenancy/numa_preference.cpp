// SPDX-License-Identifier: Apache-2.0
#include "tenancy/numa_preference.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <utility>

namespace switchyard::tenancy {
namespace {

// {known, the node's number} or {unknown, the device's address}, ordered as the policy says.
struct NodeKey {
  bool unknown = false;
  int node = 0;
  PciAddress address;
  friend auto operator<=>(const NodeKey&, const NodeKey&) = default;
};

struct Node {
  std::vector<PciAddress> free;  // not must-include; ascending
  bool needed = false;           // has a must-include device
};

using Nodes = std::map<NodeKey, Node>;

Nodes GroupByNode(std::span<const NumaDevice> available, const std::set<PciAddress>& must) {
  Nodes nodes;
  for (const NumaDevice& device : available) {
    const NodeKey key =
        device.node ? NodeKey{false, *device.node, {}} : NodeKey{true, 0, device.address};
    Node& node = nodes[key];
    if (must.contains(device.address)) {
      node.needed = true;
    } else {
      node.free.push_back(device.address);
    }
  }
  for (auto& [key, node] : nodes) {
    std::sort(node.free.begin(), node.free.end());
    node.free.erase(std::unique(node.free.begin(), node.free.end()), node.free.end());
  }
  return nodes;
}

// How much the `count` largest of `sizes` hold together.
size_t LargestSum(std::vector<size_t> sizes, size_t count) {
  std::sort(sizes.begin(), sizes.end(), std::greater<>());
  sizes.resize(std::min(count, sizes.size()));
  return std::accumulate(sizes.begin(), sizes.end(), size_t{0});
}

// Adds the fewest further nodes that hold `missing` devices, the lowest such set: each node in turn
// is taken if the largest of the later ones could complete the set.
void AddNodes(const Nodes& nodes, size_t missing, std::vector<const Node*>& chosen) {
  std::vector<const Node*> others;
  std::vector<size_t> sizes;
  for (const auto& [key, node] : nodes) {
    if (node.needed) continue;
    others.push_back(&node);
    sizes.push_back(node.free.size());
  }
  size_t count = 0;
  while (LargestSum(sizes, count) < missing) ++count;
  for (size_t i = 0; count > 0; ++i) {
    const std::vector<size_t> later(sizes.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                    sizes.end());
    if (later.size() < count - 1 || sizes[i] + LargestSum(later, count - 1) < missing) continue;
    chosen.push_back(others[i]);
    missing -= std::min(missing, sizes[i]);
    --count;
  }
}

}  // namespace

std::vector<PciAddress> ChooseByNuma(std::span<const NumaDevice> available,
                                     std::span<const PciAddress> must_include, int size) {
  const std::set<PciAddress> must(must_include.begin(), must_include.end());
  std::set<PciAddress> all;
  for (const NumaDevice& device : available) all.insert(device.address);
  const auto wanted = static_cast<size_t>(std::max(size, 0));
  if (wanted == 0 || wanted > all.size() || must.size() > wanted ||
      !std::includes(all.begin(), all.end(), must.begin(), must.end())) {
    return {};
  }

  const Nodes nodes = GroupByNode(available, must);
  std::vector<const Node*> chosen;
  size_t held = must.size();
  for (const auto& [key, node] : nodes) {
    if (!node.needed) continue;
    chosen.push_back(&node);
    held += node.free.size();
  }
  if (held < wanted) AddNodes(nodes, wanted - held, chosen);

  std::vector<PciAddress> candidates;
  for (const Node* node : chosen) {
    candidates.insert(candidates.end(), node->free.begin(), node->free.end());
  }
  std::sort(candidates.begin(), candidates.end());
  candidates.resize(wanted - must.size());
  candidates.insert(candidates.end(), must.begin(), must.end());
  std::sort(candidates.begin(), candidates.end());
  return candidates;
}

}  // namespace switchyard::tenancy
