// SPDX-License-Identifier: Apache-2.0
// The two declarations of the vendor's structures, ours and the simulator's, against the numbers in
// NVIDIA's documentation and against each other.
#include "fabric/nvfm_abi.h"

#include <gtest/gtest.h>

#include "fabric/nvml.h"
#include "sim/fm/abi.h"
#include "sim/nvml/nvml_abi.h"

namespace switchyard::fabric {
namespace {

#define EXPECT_FIELD(ours, our_field, theirs, their_field, offset)         \
  do {                                                                     \
    EXPECT_EQ(offsetof(ours, our_field), static_cast<size_t>(offset));     \
    EXPECT_EQ(offsetof(theirs, their_field), static_cast<size_t>(offset)); \
    EXPECT_EQ(sizeof(ours::our_field), sizeof(theirs::their_field));       \
  } while (false)

TEST(NvfmAbi, ConnectParams) {
  using nvfm::ConnectParamsV1;
  using nvfm::ConnectParamsV2;
  using sim::fmConnectParams;
  EXPECT_EQ(sizeof(ConnectParamsV1), 268u);
  EXPECT_EQ(sizeof(ConnectParamsV2), 272u);
  EXPECT_EQ(sizeof(fmConnectParams), 272u);
  EXPECT_EQ(nvfm::kConnectParamsV1Version, 0x0100010cu);
  EXPECT_EQ(nvfm::kConnectParamsV2Version, 0x02000110u);
  EXPECT_EQ(sim::kConnectV1, 0x0100010cu);
  EXPECT_EQ(sim::kConnectV2, 0x02000110u);
  EXPECT_FIELD(ConnectParamsV1, version, fmConnectParams, version, 0);
  EXPECT_FIELD(ConnectParamsV1, address, fmConnectParams, addressInfo, 4);
  EXPECT_FIELD(ConnectParamsV1, timeout_ms, fmConnectParams, timeoutMs, 260);
  EXPECT_FIELD(ConnectParamsV1, is_unix_socket, fmConnectParams, addressIsUnixSocket, 264);
  EXPECT_FIELD(ConnectParamsV2, version, fmConnectParams, version, 0);
  EXPECT_FIELD(ConnectParamsV2, address, fmConnectParams, addressInfo, 4);
  EXPECT_FIELD(ConnectParamsV2, timeout_ms, fmConnectParams, timeoutMs, 260);
  EXPECT_FIELD(ConnectParamsV2, is_unix_socket, fmConnectParams, addressIsUnixSocket, 264);
  EXPECT_FIELD(ConnectParamsV2, address_type, fmConnectParams, addressType, 268);
  EXPECT_EQ(static_cast<unsigned>(nvfm::AddressType::kInet), sim::kAddressInet);
  EXPECT_EQ(static_cast<unsigned>(nvfm::AddressType::kUnix), sim::kAddressUnix);
}

TEST(NvfmAbi, PartitionGpu) {
  using nvfm::PartitionGpu;
  using sim::fmFabricPartitionGpuInfo;
  EXPECT_EQ(sizeof(PartitionGpu), 128u);
  EXPECT_EQ(sizeof(fmFabricPartitionGpuInfo), 128u);
  EXPECT_FIELD(PartitionGpu, physical_id, fmFabricPartitionGpuInfo, physicalId, 0);
  EXPECT_FIELD(PartitionGpu, uuid, fmFabricPartitionGpuInfo, uuid, 4);
  EXPECT_FIELD(PartitionGpu, pci_bus_id, fmFabricPartitionGpuInfo, pciBusId, 84);
  EXPECT_FIELD(PartitionGpu, nvlinks_available, fmFabricPartitionGpuInfo, numNvLinksAvailable, 116);
  EXPECT_FIELD(PartitionGpu, nvlinks_max, fmFabricPartitionGpuInfo, maxNumNvLinks, 120);
  EXPECT_FIELD(PartitionGpu, nvlink_line_rate_mbps, fmFabricPartitionGpuInfo, nvlinkLineRateMBps,
               124);
}

TEST(NvfmAbi, PartitionInfo) {
  using nvfm::PartitionInfo;
  using sim::fmFabricPartitionInfo;
  EXPECT_EQ(sizeof(PartitionInfo), 2060u);
  EXPECT_EQ(sizeof(fmFabricPartitionInfo), 2060u);
  EXPECT_FIELD(PartitionInfo, id, fmFabricPartitionInfo, partitionId, 0);
  EXPECT_FIELD(PartitionInfo, is_active, fmFabricPartitionInfo, isActive, 4);
  EXPECT_FIELD(PartitionInfo, num_gpus, fmFabricPartitionInfo, numGpus, 8);
  EXPECT_FIELD(PartitionInfo, gpus, fmFabricPartitionInfo, gpuInfo, 12);
}

TEST(NvfmAbi, PartitionList) {
  using nvfm::PartitionList;
  using sim::fmFabricPartitionList;
  EXPECT_EQ(sizeof(PartitionList), 131852u);
  EXPECT_EQ(sizeof(fmFabricPartitionList), 131852u);
  EXPECT_EQ(nvfm::kPartitionListVersion, 0x0102030cu);
  EXPECT_EQ(sim::kPartitionList, 0x0102030cu);
  EXPECT_FIELD(PartitionList, version, fmFabricPartitionList, version, 0);
  EXPECT_FIELD(PartitionList, num_partitions, fmFabricPartitionList, numPartitions, 4);
  EXPECT_FIELD(PartitionList, max_partitions, fmFabricPartitionList, maxNumPartitions, 8);
  EXPECT_FIELD(PartitionList, partitions, fmFabricPartitionList, partitionInfo, 12);
}

TEST(NvfmAbi, ActivatedList) {
  using nvfm::ActivatedList;
  using sim::fmActivatedFabricPartitionList;
  EXPECT_EQ(sizeof(ActivatedList), 264u);
  EXPECT_EQ(sizeof(fmActivatedFabricPartitionList), 264u);
  EXPECT_EQ(nvfm::kActivatedListVersion, 0x01000108u);
  EXPECT_EQ(sim::kActivatedList, 0x01000108u);
  EXPECT_FIELD(ActivatedList, version, fmActivatedFabricPartitionList, version, 0);
  EXPECT_FIELD(ActivatedList, num_partitions, fmActivatedFabricPartitionList, numPartitions, 4);
  EXPECT_FIELD(ActivatedList, ids, fmActivatedFabricPartitionList, partitionIds, 8);
}

TEST(NvfmAbi, ScalarsOfTheCalls) {
  EXPECT_EQ(sizeof(nvfm::Return), 4u);
  EXPECT_EQ(sizeof(nvfm::Handle), sizeof(void*));
  EXPECT_EQ(sizeof(sim::fmReturn), 4u);
  EXPECT_EQ(sizeof(sim::fmHandle), sizeof(void*));
}

TEST(NvmlAbi, PciInfo) {
  using nvml::PciInfo;
  using sim::nvmlPciInfo;
  EXPECT_EQ(sizeof(PciInfo), 68u);
  EXPECT_EQ(sizeof(nvmlPciInfo), 68u);
  EXPECT_FIELD(PciInfo, bus_id_legacy, nvmlPciInfo, busIdLegacy, 0);
  EXPECT_FIELD(PciInfo, domain, nvmlPciInfo, domain, 16);
  EXPECT_FIELD(PciInfo, bus, nvmlPciInfo, bus, 20);
  EXPECT_FIELD(PciInfo, device, nvmlPciInfo, device, 24);
  EXPECT_FIELD(PciInfo, pci_device_id, nvmlPciInfo, pciDeviceId, 28);
  EXPECT_FIELD(PciInfo, pci_subsystem_id, nvmlPciInfo, pciSubSystemId, 32);
  EXPECT_FIELD(PciInfo, bus_id, nvmlPciInfo, busId, 36);
  EXPECT_EQ(nvml::kDriverNotLoaded, sim::NVML_ERROR_DRIVER_NOT_LOADED);
}

}  // namespace
}  // namespace switchyard::fabric
