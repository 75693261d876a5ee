// SPDX-License-Identifier: Apache-2.0
#pragma once

// The seam to whoever owns the partitions: Fabric Manager through its helper process
// (fabric/helper.h), a fake in tests, another back end later. Calls block up to their deadline and
// are made by one thread at a time.

#include <string>

#include "base/status.h"
#include "fabric/module_map.h"
#include "fabric/partition_table.h"

namespace switchyard::fabric {

// Where FM listens: "127.0.0.1:6666" or "unix:/run/nvidia-fabricmanager/socket".
struct FabricAddress {
  std::string text;  // ipv4:port, or the path of the socket
  bool is_unix = false;
  [[nodiscard]] static Result<FabricAddress> Parse(absl::string_view text);
  [[nodiscard]] std::string ToString() const;
};

class FabricReader {
 public:
  virtual ~FabricReader() = default;

  // One connection: connect, read the list, disconnect. Codes and what they mean to the caller:
  //   kNotFound            libnvfm is not on this machine
  //   kUnavailable         FM is down, starting, or not reachable: retry
  //   kDeadlineExceeded    no answer in time (the helper was killed)
  //   kAborted             the library crashed inside the helper
  //   kFailedPrecondition  FM runs in the wrong mode, or the address is FM's internal socket
  //   kUnimplemented       FM does not know our structures (version)
  //   kDataLoss            the list breaks FM's own rules
  //   kCancelled           a change went first (FabricControl), or this end is closed
  //   kInternal            any other code; its number and name are in the message
  // Every message says what to do next.
  [[nodiscard]] virtual Result<FabricList> ReadPartitions() = 0;

  // Module ids of the GPUs that are on the nvidia driver, from NVML; empty where NVML or the driver
  // is absent (a normal node).
  [[nodiscard]] virtual Result<ModuleEntries> ReadModuleIds() = 0;
};

}  // namespace switchyard::fabric
