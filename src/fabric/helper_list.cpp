// SPDX-License-Identifier: Apache-2.0
#include "fabric/helper_list.h"

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "absl/strings/str_cat.h"

namespace switchyard::fabric {
namespace {

constexpr std::uint32_t kMaxUuid = 80;  // FM's buffer

template <typename T>
void Put(std::string& to, T value) {
  static_assert(std::is_integral_v<T>);
  to.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// What is left to read; after the first thing that is not there, all is zero.
class Reader {
 public:
  explicit Reader(absl::string_view bytes) : left_(bytes) {}

  template <typename T>
  T Get() {
    T value{};
    const absl::string_view bytes = Bytes(sizeof(value));
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(&value));
    return value;
  }
  absl::string_view Bytes(std::size_t size) {
    ok_ = ok_ && size <= left_.size();
    if (!ok_) return {};
    const absl::string_view bytes = left_.substr(0, size);
    left_.remove_prefix(size);
    return bytes;
  }
  // A number of things that follow.
  std::uint32_t Count(std::uint32_t most) {
    const auto count = Get<std::uint32_t>();
    ok_ = ok_ && count <= most;
    return ok_ ? count : 0;
  }
  bool Flag() {
    const auto flag = Get<std::uint8_t>();
    ok_ = ok_ && flag <= 1;
    return flag == 1;
  }
  [[nodiscard]] bool ReadAll() const { return ok_ && left_.empty(); }

 private:
  absl::string_view left_;
  bool ok_ = true;
};

void PutGpu(std::string& to, const FabricGpu& gpu) {
  Put(to, gpu.physical_id);
  Put(to, gpu.nvlinks_available);
  Put(to, gpu.nvlinks_max);
  Put(to, gpu.line_rate_mbps);
  Put(to, static_cast<std::uint32_t>(gpu.uuid.size()));
  to.append(gpu.uuid);
  Put(to, static_cast<std::uint8_t>(gpu.address ? 1 : 0));
  if (!gpu.address) return;
  Put(to, gpu.address->domain);
  Put(to, gpu.address->bus);
  Put(to, gpu.address->device);
  Put(to, gpu.address->function);
}

FabricGpu GetGpu(Reader& from) {
  FabricGpu gpu;
  gpu.physical_id = from.Get<unsigned>();
  gpu.nvlinks_available = from.Get<unsigned>();
  gpu.nvlinks_max = from.Get<unsigned>();
  gpu.line_rate_mbps = from.Get<unsigned>();
  gpu.uuid = std::string(from.Bytes(from.Count(kMaxUuid)));
  if (!from.Flag()) return gpu;
  PciAddress& address = gpu.address.emplace();
  address.domain = from.Get<std::uint32_t>();
  address.bus = from.Get<std::uint8_t>();
  address.device = from.Get<std::uint8_t>();
  address.function = from.Get<std::uint8_t>();
  return gpu;
}

}  // namespace

std::string EncodeList(const FabricList& list) {
  std::string bytes;
  Put(bytes, list.max_partitions);
  Put(bytes, static_cast<std::uint32_t>(list.partitions.size()));
  for (const FabricPartition& partition : list.partitions) {
    Put(bytes, partition.id);
    Put(bytes, static_cast<std::uint8_t>(partition.active ? 1 : 0));
    Put(bytes, static_cast<std::uint32_t>(partition.gpus.size()));
    for (const FabricGpu& gpu : partition.gpus) PutGpu(bytes, gpu);
  }
  return bytes;
}

Result<FabricList> DecodeList(absl::string_view bytes) {
  Reader from(bytes);
  FabricList list;
  list.max_partitions = from.Get<int>();
  list.partitions.resize(from.Count(kMaxPartitions));
  for (FabricPartition& partition : list.partitions) {
    partition.id = from.Get<int>();
    partition.active = from.Flag();
    partition.gpus.resize(from.Count(kMaxGpusPerPartition));
    for (FabricGpu& gpu : partition.gpus) gpu = GetGpu(from);
  }
  if (!from.ReadAll()) {
    return absl::InternalError("the fabric helper's partition list is malformed");
  }
  if (const Status valid = list.Validate(); !valid.ok()) {
    return absl::InternalError(
        absl::StrCat("the fabric helper's partition list: ", valid.message()));
  }
  return list;
}

}  // namespace switchyard::fabric
