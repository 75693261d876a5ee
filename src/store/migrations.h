// SPDX-License-Identifier: Apache-2.0
#pragma once

// The schema, as a list of steps that only ever grows: step N takes a file from user_version N-1
// to N, in one transaction with the version's own change. Caller owns the connection.

#include "base/status.h"

struct sqlite3;

namespace switchyard::store {

// "SwYd", in the file's header: this database is ours.
inline constexpr int kApplicationId = 0x53775964;

[[nodiscard]] int NewestVersion();

// The file's version, 0 for an empty database. kDataLoss: another program's database;
// kFailedPrecondition: ours, of a newer version than NewestVersion().
[[nodiscard]] Result<int> ReadVersion(sqlite3* database);

// Brings the file to NewestVersion(). Two processes may try at once.
[[nodiscard]] Status Migrate(sqlite3* database);

}  // namespace switchyard::store
