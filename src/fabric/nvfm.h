// SPDX-License-Identifier: Apache-2.0
#pragma once

// libnvfm as an abstract class: one virtual for each C function this product calls, the same
// arguments and the same return codes. The library does not say whether it is thread-safe, so one
// thread makes all calls; none of them has a timeout of its own beyond Connect's. The three that
// change something may be missing in a library: ask Has before.

#include "absl/strings/string_view.h"
#include "fabric/nvfm_abi.h"

namespace switchyard::fabric {

class NvfmApi {
 public:
  virtual ~NvfmApi() = default;

  virtual nvfm::Return Init() = 0;  // once a process
  virtual nvfm::Return Shutdown() = 0;
  virtual nvfm::Return Connect(void* params, nvfm::Handle* handle) = 0;
  virtual nvfm::Return Disconnect(nvfm::Handle handle) = 0;
  virtual nvfm::Return GetSupportedFabricPartitions(nvfm::Handle handle,
                                                    nvfm::PartitionList* list) = 0;

  // `function`: the C name of one of those below.
  [[nodiscard]] virtual bool Has(absl::string_view function) const = 0;
  virtual nvfm::Return ActivateFabricPartition(nvfm::Handle handle, std::uint32_t id) = 0;
  virtual nvfm::Return DeactivateFabricPartition(nvfm::Handle handle, std::uint32_t id) = 0;
  virtual nvfm::Return SetActivatedFabricPartitions(nvfm::Handle handle,
                                                    nvfm::ActivatedList* list) = 0;
};

}  // namespace switchyard::fabric
