// SPDX-License-Identifier: Apache-2.0
#pragma once

// What agent and helper say to each other: one request, one reply, JSON but for what is big. Both
// ends are one binary, so there are no versions; still, nothing a helper sends is taken on trust,
// since a vendor library lives in it. Pure; any thread. Decoding errors are kInternal.

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "fabric/fabric_reader.h"
#include "fabric/fm_change.h"
#include "fabric/module_map.h"

namespace switchyard::fabric {

struct HelperRequest {
  enum class Call { kReadPartitions, kReadModuleIds, kChange };
  Call call = Call::kReadPartitions;
  std::string library;             // libnvfm or NVML, as the call demands
  FabricAddress address;           // not kReadModuleIds, and neither
  absl::Duration connect_timeout;  // whole milliseconds, up to INT_MAX of them
  FabricChange change;             // kChange only
};

[[nodiscard]] std::string EncodeRequest(const HelperRequest& request);
[[nodiscard]] Result<HelperRequest> DecodeRequest(absl::string_view text);

// A reply is a result (bytes, whose form depends on the call) or, as JSON, an error with its code
// and, where the error has one, its FabricAnswer.
[[nodiscard]] std::string EncodeReply(const Result<std::string>& result);
[[nodiscard]] Result<std::string> DecodeReply(absl::string_view text);

// The result of kReadModuleIds. (That of the others: helper_list.h.)
[[nodiscard]] std::string EncodeModules(const ModuleEntries& entries);
[[nodiscard]] Result<ModuleEntries> DecodeModules(absl::string_view text);

}  // namespace switchyard::fabric
