// SPDX-License-Identifier: Apache-2.0
#include "fabric/helper_list.h"

#include <gtest/gtest.h>

namespace switchyard::fabric {
namespace {

FabricGpu Gpu(unsigned id) {
  FabricGpu gpu;
  gpu.physical_id = id;
  gpu.nvlinks_available = 17;
  gpu.nvlinks_max = 18;
  gpu.line_rate_mbps = 26562;
  return gpu;
}

FabricList Sample() {
  FabricList list;
  list.max_partitions = 3;
  list.partitions = {{7, true, {Gpu(1), Gpu(2)}}, {-1, false, {Gpu(3)}}};
  list.partitions[0].gpus[1].uuid = std::string("GPU-\xff\0x", 7);
  list.partitions[1].gpus[0].address = PciAddress{0x10000, 0xdb, 31, 7};
  return list;
}

TEST(HelperList, ComesBackWhole) {
  for (const FabricList& list : {Sample(), FabricList{}}) {
    const Result<FabricList> back = DecodeList(EncodeList(list));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, list);
  }
}

TEST(HelperList, EachPartOfOneIsMalformed) {
  const std::string whole = EncodeList(Sample());
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(DecodeList(whole.substr(0, size)).status().code(), absl::StatusCode::kInternal)
        << size;
  }
  EXPECT_EQ(DecodeList(whole + "x").status().code(), absl::StatusCode::kInternal);
}

TEST(HelperList, NumbersBeyondTheRulesAreMalformed) {
  const std::string whole = EncodeList(Sample());
  // The counts of partitions and of GPUs, the flags of activity and of an address.
  for (const size_t at : {size_t{4}, size_t{13}, size_t{12}, whole.size() - 8}) {
    std::string bad = whole;
    bad[at] = '\x7f';
    EXPECT_EQ(DecodeList(bad).status().code(), absl::StatusCode::kInternal) << at;
  }
  FabricList twice = Sample();
  twice.partitions[1].id = 7;
  EXPECT_EQ(DecodeList(EncodeList(twice)).status().code(), absl::StatusCode::kInternal);
  FabricList named = Sample();
  named.partitions[0].gpus[0].uuid = std::string(81, 'x');
  EXPECT_EQ(DecodeList(EncodeList(named)).status().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace switchyard::fabric
