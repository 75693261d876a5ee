// SPDX-License-Identifier: Apache-2.0
#pragma once

// The C ABI of NVIDIA's libnvfm, as far as this product calls it: our own declarations of layouts
// and numbers that the Fabric Manager user guide documents. Every field is 32 bits wide or an array
// of char, so there is no padding on any of our machines; nvfm_abi_test.cpp checks each offset. A
// structure's version word is its size with the structure's number in the top byte.

#include <cstddef>
#include <cstdint>

namespace switchyard::fabric::nvfm {

inline constexpr std::size_t kAddressBytes = 256;
inline constexpr std::size_t kUuidBytes = 80;
inline constexpr std::size_t kPciBusIdBytes = 32;
inline constexpr std::size_t kMaxGpus = 16;
inline constexpr std::size_t kMaxPartitions = 64;

using Return = std::int32_t;  // a C enum; nvfm_codes.h knows the values
using Handle = void*;

enum class AddressType : std::uint32_t { kUnknown = 0, kInet = 1, kUnix = 2, kVsock = 3 };

struct ConnectParamsV1 {
  std::uint32_t version;
  char address[kAddressBytes];  // "127.0.0.1:6666", or the path of a unix socket
  std::uint32_t timeout_ms;     // of the connect alone; 0 makes it fail
  std::uint32_t is_unix_socket;
};

struct ConnectParamsV2 {
  std::uint32_t version;
  char address[kAddressBytes];
  std::uint32_t timeout_ms;
  std::uint32_t is_unix_socket;  // superseded by address_type; we set both
  AddressType address_type;
};

struct PartitionGpu {
  std::uint32_t physical_id;
  char uuid[kUuidBytes];
  char pci_bus_id[kPciBusIdBytes];
  std::uint32_t nvlinks_available;
  std::uint32_t nvlinks_max;
  std::uint32_t nvlink_line_rate_mbps;
};

struct PartitionInfo {
  std::uint32_t id;
  std::uint32_t is_active;
  std::uint32_t num_gpus;
  PartitionGpu gpus[kMaxGpus];
};

struct PartitionList {
  std::uint32_t version;
  std::uint32_t num_partitions;
  std::uint32_t max_partitions;
  PartitionInfo partitions[kMaxPartitions];
};

struct ActivatedList {
  std::uint32_t version;
  std::uint32_t num_partitions;
  std::uint32_t ids[kMaxPartitions];
};

template <typename Struct>
constexpr std::uint32_t VersionWord(std::uint32_t number) {
  return static_cast<std::uint32_t>(sizeof(Struct)) | number << 24;
}
inline constexpr std::uint32_t kConnectParamsV1Version = VersionWord<ConnectParamsV1>(1);
inline constexpr std::uint32_t kConnectParamsV2Version = VersionWord<ConnectParamsV2>(2);
inline constexpr std::uint32_t kPartitionListVersion = VersionWord<PartitionList>(1);
inline constexpr std::uint32_t kActivatedListVersion = VersionWord<ActivatedList>(1);

// Types of the functions, all with C linkage.
using LibInitFunction = Return();
using LibShutdownFunction = Return();
using ConnectFunction = Return(void* params, Handle* handle);  // params: V1 or V2, by its version
using DisconnectFunction = Return(Handle handle);
using GetSupportedFabricPartitionsFunction = Return(Handle handle, PartitionList* list);
using ActivateFabricPartitionFunction = Return(Handle handle, std::uint32_t id);
using DeactivateFabricPartitionFunction = Return(Handle handle, std::uint32_t id);
using SetActivatedFabricPartitionsFunction = Return(Handle handle, ActivatedList* list);

}  // namespace switchyard::fabric::nvfm
