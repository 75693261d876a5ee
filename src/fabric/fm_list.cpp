// SPDX-License-Identifier: Apache-2.0
// ConvertList: from libnvfm's structure to FabricList.
#include <algorithm>
#include <climits>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "fabric/fm_client.h"

namespace switchyard::fabric {
namespace {

Status BrokenRule(absl::string_view rule) {
  return absl::DataLossError(
      absl::StrCat("Fabric Manager's list breaks a rule: ", rule,
                   "; the list was not used. Check that libnvfm and Fabric Manager are of one "
                   "version, and restart Fabric Manager once no guest needs it"));
}

// The text in a buffer of the C structure: ends before its end, printable ASCII.
template <std::size_t N>
Result<std::string> TextOf(const char (&buffer)[N], absl::string_view where) {
  const std::size_t length = ::strnlen(buffer, N);
  if (length == N) {
    return BrokenRule(absl::StrCat(where, " is not terminated within its ", N, " bytes"));
  }
  std::string text(buffer, length);
  if (!std::all_of(text.begin(), text.end(), [](char c) { return absl::ascii_isprint(c); })) {
    return BrokenRule(absl::StrCat(where, " \"", absl::CHexEscape(text), "\" is not plain text"));
  }
  return text;
}

// Empty and all zeros both mean that FM names no address (H100 and later).
Result<std::optional<PciAddress>> AddressOf(const nvfm::PartitionGpu& gpu,
                                            absl::string_view where) {
  ASSIGN_OR_RETURN(const std::string text, TextOf(gpu.pci_bus_id, absl::StrCat(where, "pciBusId")));
  if (text.empty()) return std::nullopt;
  const Result<PciAddress> address = PciAddress::Parse(text);
  if (!address.ok()) {
    return BrokenRule(absl::StrCat(where, "pciBusId: ", address.status().message()));
  }
  if (*address == PciAddress{}) return std::nullopt;
  return *address;
}

Result<FabricGpu> ConvertGpu(const nvfm::PartitionGpu& gpu, absl::string_view where) {
  FabricGpu converted;
  converted.physical_id = gpu.physical_id;
  ASSIGN_OR_RETURN(converted.uuid, TextOf(gpu.uuid, absl::StrCat(where, "uuid")));
  ASSIGN_OR_RETURN(converted.address, AddressOf(gpu, where));
  converted.nvlinks_available = gpu.nvlinks_available;
  converted.nvlinks_max = gpu.nvlinks_max;
  converted.line_rate_mbps = gpu.nvlink_line_rate_mbps;
  return converted;
}

Result<FabricPartition> ConvertPartition(const nvfm::PartitionInfo& info) {
  if (info.id > INT_MAX) return BrokenRule(absl::StrCat("partition id ", info.id, " is too large"));
  if (info.num_gpus > nvfm::kMaxGpus) {
    return BrokenRule(absl::StrCat("partition ", info.id, " has ", info.num_gpus, " GPUs; at most ",
                                   nvfm::kMaxGpus, " are possible"));
  }
  FabricPartition partition;
  partition.id = static_cast<int>(info.id);
  partition.active = info.is_active != 0;
  for (std::uint32_t i = 0; i < info.num_gpus; ++i) {
    ASSIGN_OR_RETURN(FabricGpu gpu, ConvertGpu(info.gpus[i], absl::StrCat("partition ", info.id,
                                                                          ", GPU ", i, ", ")));
    partition.gpus.push_back(std::move(gpu));
  }
  return partition;
}

}  // namespace

Result<FabricList> ConvertList(const nvfm::PartitionList& list) {
  if (list.num_partitions > nvfm::kMaxPartitions) {
    return BrokenRule(absl::StrCat("it has ", list.num_partitions, " partitions; at most ",
                                   nvfm::kMaxPartitions, " are possible"));
  }
  if (list.max_partitions > INT_MAX) {
    return BrokenRule(absl::StrCat("maxNumPartitions ", list.max_partitions, " is too large"));
  }
  FabricList converted;
  converted.max_partitions = static_cast<int>(list.max_partitions);
  for (std::uint32_t i = 0; i < list.num_partitions; ++i) {
    ASSIGN_OR_RETURN(FabricPartition partition, ConvertPartition(list.partitions[i]));
    converted.partitions.push_back(std::move(partition));
  }
  if (const Status valid = converted.Validate(); !valid.ok()) return BrokenRule(valid.message());
  return converted;
}

}  // namespace switchyard::fabric
