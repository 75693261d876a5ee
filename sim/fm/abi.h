// SPDX-License-Identifier: Apache-2.0
#pragma once

// libnvfm's C ABI as the simulator offers it. Written down from NVIDIA's documentation a second
// time, apart from the product's src/fabric/nvfm_abi.h and with the vendor's field names, so that
// each checks the other (src/fabric/nvfm_abi_test.cpp compares them). Plain C layout.

#include <cstdint>

namespace switchyard::sim {

using fmReturn = std::int32_t;
using fmHandle = void*;

inline constexpr fmReturn FM_SUCCESS = 0;
inline constexpr fmReturn FM_BADPARAM = -1;
inline constexpr fmReturn FM_GENERIC_ERROR = -2;
inline constexpr fmReturn FM_UNINITIALIZED = -4;
inline constexpr fmReturn FM_TIMEOUT = -5;
inline constexpr fmReturn FM_VERSION_MISMATCH = -6;
inline constexpr fmReturn FM_IN_USE = -7;
inline constexpr fmReturn FM_NOT_CONFIGURED = -8;
inline constexpr fmReturn FM_CONNECTION_NOT_VALID = -9;
inline constexpr fmReturn FM_PARTITION_ID_IN_USE = -17;
inline constexpr fmReturn FM_PARTITION_ID_NOT_IN_USE = -18;
inline constexpr fmReturn FM_RESOURCE_USED_IN_ANOTHER_PARTITION = -24;

struct fmConnectParams {  // version 2; version 1 ends before addressType
  std::uint32_t version;
  char addressInfo[256];
  std::uint32_t timeoutMs;
  std::uint32_t addressIsUnixSocket;
  std::uint32_t addressType;
};
inline constexpr std::uint32_t kConnectV1 = 0x0100010c;
inline constexpr std::uint32_t kConnectV2 = 0x02000110;
inline constexpr std::uint32_t kAddressInet = 1;
inline constexpr std::uint32_t kAddressUnix = 2;

struct fmFabricPartitionGpuInfo {
  std::uint32_t physicalId;
  char uuid[80];
  char pciBusId[32];
  std::uint32_t numNvLinksAvailable;
  std::uint32_t maxNumNvLinks;
  std::uint32_t nvlinkLineRateMBps;
};

struct fmFabricPartitionInfo {
  std::uint32_t partitionId;
  std::uint32_t isActive;
  std::uint32_t numGpus;
  fmFabricPartitionGpuInfo gpuInfo[16];
};

struct fmFabricPartitionList {
  std::uint32_t version;
  std::uint32_t numPartitions;
  std::uint32_t maxNumPartitions;
  fmFabricPartitionInfo partitionInfo[64];
};
inline constexpr std::uint32_t kPartitionList = 0x0102030c;

struct fmActivatedFabricPartitionList {
  std::uint32_t version;
  std::uint32_t numPartitions;
  std::uint32_t partitionIds[64];
};
inline constexpr std::uint32_t kActivatedList = 0x01000108;

}  // namespace switchyard::sim
