// SPDX-License-Identifier: Apache-2.0
#pragma once

// The little of SQLite's C interface that the store needs, with our Status. The caller serialises
// all use of one connection.

#include <sqlite3.h>

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "base/status.h"

namespace switchyard::store {

struct CloseDatabase {
  void operator()(sqlite3* database) const { ::sqlite3_close_v2(database); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;

struct FinalizeStatement {
  void operator()(sqlite3_stmt* statement) const { ::sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

// The error of the last call on `database` that returned `code`. kDataLoss: the file is corrupt or
// no database at all; kUnavailable: locked by another process for longer than the busy timeout.
[[nodiscard]] Status SqliteError(sqlite3* database, int code, absl::string_view what);

[[nodiscard]] Result<Statement> Prepare(sqlite3* database, absl::string_view sql);
[[nodiscard]] Status Execute(sqlite3* database, const std::string& sql);
// The first column of the first row.
[[nodiscard]] Result<std::string> QueryText(sqlite3* database, absl::string_view sql);
[[nodiscard]] Result<int> QueryInt(sqlite3* database, absl::string_view sql);

// Column `column` of the current row as bytes, embedded zeros included.
[[nodiscard]] std::string ColumnText(sqlite3_stmt* statement, int column);

}  // namespace switchyard::store
