// SPDX-License-Identifier: Apache-2.0
#pragma once

// The names in an open folder of sysfs or procfs. getdents64(2) itself: opendir(3) would add three
// system calls and 32 KiB of heap to each. Inside src/pci only; any thread.

#include "absl/functional/function_ref.h"

namespace switchyard::pci {

// Calls `each` for every name but "." and ".." until it returns false. 0, or errno; what was read
// before an error has been passed on.
[[nodiscard]] int ForEachName(int folder, absl::FunctionRef<bool(const char*)> each);

}  // namespace switchyard::pci
