// SPDX-License-Identifier: Apache-2.0
#pragma once

// One operation on Fabric Manager through libnvfm: connect, change something or nothing, read the
// list, disconnect. What FM says is checked strictly and refused, never clamped. The library is
// initialised with the first operation and shut down by the destructor. One thread; runs in the
// helper process, since a call that hangs can't be cancelled.

#include <memory>

#include "absl/time/time.h"
#include "base/status.h"
#include "fabric/fabric_reader.h"
#include "fabric/fm_change.h"
#include "fabric/nvfm.h"
#include "fabric/partition_table.h"

namespace switchyard::fabric {

class FmClient {
 public:
  explicit FmClient(std::unique_ptr<NvfmApi> api) : api_(std::move(api)) {}
  ~FmClient();
  FmClient(const FmClient&) = delete;
  FmClient& operator=(const FmClient&) = delete;

  // Codes as FabricReader::ReadPartitions. `connect_timeout` is rounded up to whole milliseconds,
  // at least one.
  [[nodiscard]] Result<FabricList> ReadPartitions(const FabricAddress& address,
                                                  absl::Duration connect_timeout);
  // Codes as FabricControl; kUnimplemented also if the library lacks the function.
  [[nodiscard]] Result<FabricList> Change(const FabricAddress& address,
                                          absl::Duration connect_timeout,
                                          const FabricChange& change);

 private:
  Status Initialize();
  Result<nvfm::Handle> Connect(const FabricAddress& address, absl::Duration timeout);
  nvfm::Return Call(nvfm::Handle handle, const FabricChange& change);
  Result<FabricList> List(nvfm::Handle handle, const FabricAddress& address);

  std::unique_ptr<NvfmApi> api_;
  bool initialized_ = false;
};

// libnvfm's structure as our own: every string bounded by its buffer, counts within FM's limits,
// then FabricList::Validate. kDataLoss names the partition and the rule.
[[nodiscard]] Result<FabricList> ConvertList(const nvfm::PartitionList& list);

}  // namespace switchyard::fabric
