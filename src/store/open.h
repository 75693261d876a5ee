// SPDX-License-Identifier: Apache-2.0
#pragma once

// Opening the file: whose it is, whether it is whole, and what to do if not. Blocking; one process
// opens a file read-write (the agent's owner lock).

#include <optional>
#include <string>

#include "base/status.h"
#include "store/sqlite.h"

namespace switchyard::store {

// kNotFound without a file (or with one that was never begun), kDataLoss for a corrupt one. Works
// on a folder that can't be written, beside a running agent and without one.
[[nodiscard]] Result<Database> OpenReadOnly(const std::string& path);

struct WritableDatabase {
  Database database;
  std::optional<std::string> set_aside;
};

// Makes folder and file if missing; sets a corrupt file aside and begins anew.
[[nodiscard]] Result<WritableDatabase> OpenReadWrite(const std::string& folder,
                                                     const std::string& path);

}  // namespace switchyard::store
