// SPDX-License-Identifier: Apache-2.0
#pragma once

// A change of the active partitions, and what Fabric Manager's answer to it means. One code has
// several meanings, and generations differ in their codes for one meaning (already active: -7 on
// Hopper, -17 on Blackwell), so the list read after the call decides. Pure; any thread.

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/status.h"
#include "fabric/fabric_reader.h"
#include "fabric/nvfm_abi.h"
#include "fabric/partition_table.h"

namespace switchyard::fabric {

struct FabricChange {
  enum class Kind { kActivate, kDeactivate, kSetActivated };
  Kind kind = Kind::kActivate;
  std::vector<int> partitions;  // one id; of kSetActivated up to 64 different ones

  // kInvalidArgument names the rule.
  [[nodiscard]] Status Validate() const;
  [[nodiscard]] absl::string_view function() const;  // of libnvfm
  // "activate partition 3"; "set the active partitions to 3, 5" (or "to none").
  [[nodiscard]] std::string ToString() const;
  // True if `list` is as the change wants it.
  [[nodiscard]] bool ShownBy(const FabricList& list) const;
};

// False for codes that leave nothing to read: no connection, wrong mode, wrong version.
[[nodiscard]] bool DecidedByList(nvfm::Return code);

// The list, if it shows what was asked for and `code` is no fault; else the error, with the codes
// that FabricControl documents. `list`: read after the call, on the same connection.
[[nodiscard]] Result<FabricList> Settle(const FabricChange& change, nvfm::Return code,
                                        Result<FabricList> list, const FabricAddress& address);

}  // namespace switchyard::fabric
