// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite.h"

#include "absl/strings/str_cat.h"

namespace switchyard::store {
namespace {

absl::StatusCode CodeOf(int code) {
  switch (code & 0xff) {  // the low byte is the primary code
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::StatusCode::kDataLoss;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::StatusCode::kUnavailable;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return absl::StatusCode::kPermissionDenied;
    case SQLITE_FULL:
    case SQLITE_NOMEM:
      return absl::StatusCode::kResourceExhausted;
    case SQLITE_CANTOPEN:
      return absl::StatusCode::kFailedPrecondition;
    default:
      return absl::StatusCode::kInternal;
  }
}

Result<Statement> FirstRow(sqlite3* database, absl::string_view sql) {
  ASSIGN_OR_RETURN(Statement statement, Prepare(database, sql));
  const int code = ::sqlite3_step(statement.get());
  if (code == SQLITE_DONE) return absl::InternalError(absl::StrCat(sql, ": no row"));
  if (code != SQLITE_ROW) return SqliteError(database, code, sql);
  return statement;
}

}  // namespace

Status SqliteError(sqlite3* database, int code, absl::string_view what) {
  std::string message = absl::StrCat(what, ": ", ::sqlite3_errmsg(database));
  if (const int error = ::sqlite3_system_errno(database);
      error != 0 && ((code & 0xff) == SQLITE_CANTOPEN || (code & 0xff) == SQLITE_IOERR)) {
    return ErrnoError(error, message);
  }
  absl::StrAppend(&message, " (SQLite code ", code, ")");
  return Status(CodeOf(code), message);
}

Result<Statement> Prepare(sqlite3* database, absl::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int code = ::sqlite3_prepare_v3(database, sql.data(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (code != SQLITE_OK) return SqliteError(database, code, sql);
  return Statement(statement);
}

Status Execute(sqlite3* database, const std::string& sql) {
  const int code = ::sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? OkStatus() : SqliteError(database, code, sql);
}

Result<std::string> QueryText(sqlite3* database, absl::string_view sql) {
  ASSIGN_OR_RETURN(const Statement statement, FirstRow(database, sql));
  return ColumnText(statement.get(), 0);
}

Result<int> QueryInt(sqlite3* database, absl::string_view sql) {
  ASSIGN_OR_RETURN(const Statement statement, FirstRow(database, sql));
  return ::sqlite3_column_int(statement.get(), 0);
}

std::string ColumnText(sqlite3_stmt* statement, int column) {
  const void* bytes = ::sqlite3_column_blob(statement, column);
  const auto size = static_cast<size_t>(::sqlite3_column_bytes(statement, column));
  return bytes == nullptr ? std::string() : std::string(static_cast<const char*>(bytes), size);
}

}  // namespace switchyard::store
