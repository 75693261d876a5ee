// SPDX-License-Identifier: Apache-2.0
#pragma once

// The only source of chance of a run: the same seed gives the same run on every machine. A plain
// value; not for anything but tests.

#include <cstdint>

namespace switchyard::enforce_sim {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}

  std::uint64_t Next() {  // splitmix64
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // 0 .. n-1; n > 0.
  int Below(int n) { return static_cast<int>(Next() % static_cast<std::uint64_t>(n)); }
  int Between(int low, int high) { return low + Below(high - low + 1); }
  bool Percent(int p) { return Below(100) < p; }
  // One of a container that is not empty.
  template <typename C>
  auto& Of(C& c) {
    return c[static_cast<std::size_t>(Below(static_cast<int>(c.size())))];
  }

 private:
  std::uint64_t state_;
};

}  // namespace switchyard::enforce_sim
