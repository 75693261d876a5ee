// SPDX-License-Identifier: Apache-2.0
#pragma once

// The part of NVML's C ABI that the simulator offers, written down from NVIDIA's documentation
// apart from the product's src/fabric/nvml.h, with the vendor's field names: each checks the other.

#include <cstdint>

namespace switchyard::sim {

using nvmlReturn = std::int32_t;
using nvmlDevice = void*;

inline constexpr nvmlReturn NVML_SUCCESS = 0;
inline constexpr nvmlReturn NVML_ERROR_UNINITIALIZED = 1;
inline constexpr nvmlReturn NVML_ERROR_INVALID_ARGUMENT = 2;
inline constexpr nvmlReturn NVML_ERROR_DRIVER_NOT_LOADED = 9;

struct nvmlPciInfo {
  char busIdLegacy[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned pciDeviceId;
  unsigned pciSubSystemId;
  char busId[32];
};

}  // namespace switchyard::sim
