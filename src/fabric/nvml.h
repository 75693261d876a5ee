// SPDX-License-Identifier: Apache-2.0
#pragma once

// NVML as an abstract class: the few functions that tell where a GPU sits on its board, one virtual
// each, same arguments and codes. Our own declarations of what NVIDIA's NVML reference documents;
// nvfm_abi_test.cpp checks the offsets. One thread; helper process only: an initialised NVML holds
// /dev/nvidia* open, and a call may hang in the driver.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"

namespace switchyard::fabric {

namespace nvml {

using Return = std::int32_t;  // a C enum
using Device = void*;

inline constexpr Return kSuccess = 0;
inline constexpr Return kUninitialized = 1;
inline constexpr Return kNotSupported = 3;
inline constexpr Return kNoPermission = 4;
inline constexpr Return kNotFound = 6;
inline constexpr Return kDriverNotLoaded = 9;
inline constexpr Return kTimeout = 10;
inline constexpr Return kLibraryNotFound = 12;
inline constexpr Return kLibRmVersionMismatch = 18;

struct PciInfo {
  char bus_id_legacy[16];
  std::uint32_t domain;
  std::uint32_t bus;
  std::uint32_t device;
  std::uint32_t pci_device_id;
  std::uint32_t pci_subsystem_id;
  char bus_id[32];  // "00000000:0F:00.0"
};

}  // namespace nvml

class NvmlApi {
 public:
  virtual ~NvmlApi() = default;

  virtual nvml::Return Init() = 0;
  virtual nvml::Return Shutdown() = 0;
  virtual nvml::Return DeviceGetCount(unsigned* count) = 0;
  virtual nvml::Return DeviceGetHandleByIndex(unsigned index, nvml::Device* device) = 0;
  virtual nvml::Return DeviceGetPciInfo(nvml::Device device, nvml::PciInfo* info) = 0;
  virtual nvml::Return DeviceGetModuleId(nvml::Device device, unsigned* module) = 0;
  virtual const char* ErrorString(nvml::Return code) = 0;
};

// `path` empty: libnvidia-ml.so.1 where the loader searches. kNotFound if it can't be opened,
// kUnimplemented if a function is missing (named).
[[nodiscard]] Result<std::unique_ptr<NvmlApi>> LoadNvml(const std::string& path);

}  // namespace switchyard::fabric
