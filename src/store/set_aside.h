// SPDX-License-Identifier: Apache-2.0
#pragma once

// Moving a database that can't be read out of the way, for a person to look at. Blocking; the
// caller owns the folder and has closed the file.

#include <string>

#include "absl/time/time.h"
#include "base/status.h"

namespace switchyard::store {

// Renames `path` to "<path>.corrupt-20260131T235959Z", its -wal and -shm with it, and returns the
// new name. A name that exists already is never overwritten.
[[nodiscard]] Result<std::string> SetAside(const std::string& path, absl::Time now);

}  // namespace switchyard::store
