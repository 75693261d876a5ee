// SPDX-License-Identifier: Apache-2.0
#pragma once

// A set of module ids (1..16) as bits 1..16 of one word: every question of the planner is a few
// machine instructions. A plain value.

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace switchyard::fabric {

// A GPU's position on its board, the identity Fabric Manager uses. 16 is FM's own limit
// (FM_MAX_NUM_GPUS, reference: NVIDIA's Fabric Manager user guide, SDK structures).
using ModuleId = int;
inline constexpr ModuleId kMinModule = 1;
inline constexpr ModuleId kMaxModule = 16;

class ModuleSet {
 public:
  constexpr ModuleSet() = default;
  constexpr ModuleSet(std::initializer_list<ModuleId> modules) {
    for (ModuleId m : modules) Insert(m);
  }
  // All of 1..count.
  [[nodiscard]] static constexpr ModuleSet FirstN(int count) {
    ModuleSet s;
    s.bits_ = ((1u << count) - 1u) << 1;
    return s;
  }

  constexpr void Insert(ModuleId m) { bits_ |= 1u << m; }  // precondition: 1..16
  constexpr void Erase(ModuleId m) { bits_ &= ~(1u << m); }
  [[nodiscard]] constexpr bool Contains(ModuleId m) const { return (bits_ >> m & 1u) != 0; }
  [[nodiscard]] constexpr bool ContainsAll(ModuleSet s) const { return (s.bits_ & ~bits_) == 0; }
  [[nodiscard]] constexpr bool Overlaps(ModuleSet s) const { return (bits_ & s.bits_) != 0; }
  [[nodiscard]] constexpr bool empty() const { return bits_ == 0; }
  [[nodiscard]] constexpr int size() const { return std::popcount(bits_); }
  [[nodiscard]] constexpr std::uint32_t bits() const { return bits_; }

  [[nodiscard]] std::vector<ModuleId> ToVector() const;  // ascending
  [[nodiscard]] std::string ToString() const;            // "1,3"

  friend constexpr ModuleSet operator|(ModuleSet a, ModuleSet b) {
    return FromBits(a.bits_ | b.bits_);
  }
  friend constexpr ModuleSet operator&(ModuleSet a, ModuleSet b) {
    return FromBits(a.bits_ & b.bits_);
  }
  friend constexpr ModuleSet operator-(ModuleSet a, ModuleSet b) {
    return FromBits(a.bits_ & ~b.bits_);
  }
  friend constexpr bool operator==(ModuleSet, ModuleSet) = default;

 private:
  static constexpr ModuleSet FromBits(std::uint32_t bits) {
    ModuleSet s;
    s.bits_ = bits;
    return s;
  }
  std::uint32_t bits_ = 0;
};

}  // namespace switchyard::fabric
