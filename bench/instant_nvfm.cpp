// SPDX-License-Identifier: Apache-2.0
// A libnvfm with no Fabric Manager behind it, for agent_bench: every call is answered from this
// process's memory at once. fmConnect's address is a file with the list to begin with, as libnvfm's
// own structure. One caller at a time.
#include <cstdio>

#include "sim/fm/abi.h"

using namespace switchyard::sim;

namespace {

fmFabricPartitionList table;  // numPartitions is 0 until the first fmConnect

fmReturn SetActive(std::uint32_t id, std::uint32_t active) {
  for (std::uint32_t i = 0; i < table.numPartitions; ++i) {
    fmFabricPartitionInfo& partition = table.partitionInfo[i];
    if (partition.partitionId != id) continue;
    if (partition.isActive == active) return active != 0 ? FM_IN_USE : FM_UNINITIALIZED;
    partition.isActive = active;
    return FM_SUCCESS;
  }
  return FM_BADPARAM;
}

}  // namespace

extern "C" {

#define EXPORTED __attribute__((visibility("default")))

EXPORTED fmReturn fmLibInit() { return FM_SUCCESS; }
EXPORTED fmReturn fmLibShutdown() { return FM_SUCCESS; }

EXPORTED fmReturn fmConnect(fmConnectParams* params, fmHandle* handle) {
  *handle = &table;
  if (table.numPartitions != 0) return FM_SUCCESS;
  std::FILE* const file = std::fopen(params->addressInfo, "rb");
  if (file == nullptr) return FM_CONNECTION_NOT_VALID;
  const bool read = std::fread(&table, sizeof(table), 1, file) == 1;
  std::fclose(file);
  return read ? FM_SUCCESS : FM_GENERIC_ERROR;
}
EXPORTED fmReturn fmDisconnect(fmHandle) { return FM_SUCCESS; }

EXPORTED fmReturn fmGetSupportedFabricPartitions(fmHandle, fmFabricPartitionList* list) {
  *list = table;
  return FM_SUCCESS;
}
EXPORTED fmReturn fmActivateFabricPartition(fmHandle, std::uint32_t id) { return SetActive(id, 1); }
EXPORTED fmReturn fmDeactivateFabricPartition(fmHandle, std::uint32_t id) {
  return SetActive(id, 0);
}
EXPORTED fmReturn fmSetActivatedFabricPartitions(fmHandle, fmActivatedFabricPartitionList*) {
  return FM_GENERIC_ERROR;  // it never waits for a list
}

}  // extern "C"
