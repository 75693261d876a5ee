// SPDX-License-Identifier: Apache-2.0
#pragma once

// A partition list on its way from the helper to the agent: each Allocate waits for one in
// `enforce`, and as JSON it took some fifty times as long (docs/performance.md). Integers in the
// machine's own order (both ends are one binary), strings with their length. Pure; any thread.

#include <string>

#include "absl/strings/string_view.h"
#include "base/status.h"
#include "fabric/partition_table.h"

namespace switchyard::fabric {

[[nodiscard]] std::string EncodeList(const FabricList& list);
// kInternal: malformed, or refused by FabricList::Validate.
[[nodiscard]] Result<FabricList> DecodeList(absl::string_view bytes);

}  // namespace switchyard::fabric
