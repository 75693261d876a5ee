// SPDX-License-Identifier: Apache-2.0
#include "tenancy/numa_preference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>

namespace switchyard::tenancy {
namespace {

PciAddress At(int bus) { return {0, static_cast<std::uint8_t>(bus), 0, 0}; }

std::vector<NumaDevice> Devices(const std::vector<std::pair<int, int>>& bus_and_node) {
  std::vector<NumaDevice> devices;
  for (const auto& [bus, node] : bus_and_node) {
    devices.push_back({At(bus), node < 0 ? std::nullopt : std::optional(node)});
  }
  return devices;
}

std::vector<int> Choose(const std::vector<std::pair<int, int>>& available,
                        const std::vector<int>& must, int size) {
  std::vector<PciAddress> must_include;
  for (const int bus : must) must_include.push_back(At(bus));
  std::vector<int> buses;
  for (const PciAddress& a : ChooseByNuma(Devices(available), must_include, size)) {
    buses.push_back(a.bus);
  }
  return buses;
}

using Buses = std::vector<int>;

TEST(NumaPreferenceTest, TakesTheLowestNodeThatHoldsAll) {
  EXPECT_EQ(Choose({{1, 1}, {2, 0}, {3, 1}, {4, 0}}, {}, 2), (Buses{2, 4}));
  EXPECT_EQ(Choose({{1, 1}, {2, 0}, {3, 1}}, {}, 2), (Buses{1, 3})) << "not one of each";
}

TEST(NumaPreferenceTest, StaysWithTheMustInclude) {
  EXPECT_EQ(Choose({{1, 0}, {2, 0}, {3, 1}, {4, 1}}, {3}, 2), (Buses{3, 4}));
  EXPECT_EQ(Choose({{1, 0}, {2, 0}, {3, 1}, {4, 1}}, {3}, 3), (Buses{1, 2, 3}))
      << "two nodes either way: lowest addresses";
}

TEST(NumaPreferenceTest, AnUnknownNodeIsNeverNodeZero) {
  EXPECT_EQ(Choose({{1, -1}, {2, -1}, {3, 0}, {4, 0}}, {}, 2), (Buses{3, 4}));
  EXPECT_EQ(Choose({{1, -1}, {2, 5}}, {}, 1), (Buses{2})) << "after the known ones";
  EXPECT_EQ(Choose({{1, -1}, {2, -1}}, {}, 2), (Buses{1, 2}));
}

TEST(NumaPreferenceTest, NothingFits) {
  EXPECT_EQ(Choose({{1, 0}}, {}, 2), Buses{});
  EXPECT_EQ(Choose({{1, 0}}, {}, 0), Buses{});
  EXPECT_EQ(Choose({{1, 0}}, {}, -1), Buses{});
  EXPECT_EQ(Choose({{1, 0}, {2, 0}}, {1, 2}, 1), Buses{});
  EXPECT_EQ(Choose({{1, 0}, {2, 0}}, {3}, 1), Buses{});
  EXPECT_EQ(Choose({}, {}, 1), Buses{});
}

TEST(NumaPreferenceTest, ADeviceNamedTwiceCountsOnce) {
  EXPECT_EQ(Choose({{1, 0}, {1, 0}}, {}, 2), Buses{});
  EXPECT_EQ(Choose({{1, 0}, {1, 0}, {2, 1}}, {1, 1}, 2), (Buses{1, 2}));
}

// The rule in its words: of all sets that hold the must-include ones, the one with the fewest
// nodes, then the lowest nodes, then the lowest addresses.
Buses BruteForce(const std::vector<std::pair<int, int>>& available, const Buses& must, int size) {
  std::optional<std::tuple<size_t, std::vector<int>, Buses>> best;
  for (unsigned bits = 0; bits < 1u << available.size(); ++bits) {
    Buses set;
    std::vector<int> nodes;
    for (size_t i = 0; i < available.size(); ++i) {
      if ((bits >> i & 1u) == 0) continue;
      const auto [bus, node] = available[i];
      set.push_back(bus);
      nodes.push_back(node < 0 ? 1000 + bus : node);
    }
    if (static_cast<int>(set.size()) != size) continue;
    if (!std::all_of(must.begin(), must.end(),
                     [&](int m) { return std::find(set.begin(), set.end(), m) != set.end(); })) {
      continue;
    }
    std::sort(set.begin(), set.end());
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    const std::tuple candidate(nodes.size(), nodes, set);
    if (!best || candidate < *best) best = candidate;
  }
  return best ? std::get<2>(*best) : Buses{};
}

TEST(NumaPreferenceTest, AgreesWithTryingEverySet) {
  std::mt19937 random(20260101);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 800; ++round) {
    Buses buses(16);
    for (int i = 0; i < 16; ++i) buses[static_cast<size_t>(i)] = i + 1;
    std::shuffle(buses.begin(), buses.end(), random);
    std::vector<std::pair<int, int>> available;
    const int nodes = 1 + below(5);
    for (int i = 0, count = below(9); i < count; ++i) {
      available.emplace_back(buses[static_cast<size_t>(i)], below(nodes + 1) - 1);
    }
    Buses must;
    for (const auto& [bus, node] : available) {
      if (below(5) == 0) must.push_back(bus);
    }
    for (int size = 1; size <= 8; ++size) {
      ASSERT_EQ(Choose(available, must, size), BruteForce(available, must, size))
          << ::testing::PrintToString(available) << " must " << ::testing::PrintToString(must)
          << " size " << size;
    }
  }
}

}  // namespace
}  // namespace switchyard::tenancy
