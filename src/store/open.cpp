// SPDX-License-Identifier: Apache-2.0
#include "store/open.h"

#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "base/files.h"
#include "store/migrations.h"
#include "store/set_aside.h"

namespace switchyard::store {
namespace {

constexpr int kBusyTimeoutMs = 5000;

// Small on purpose: the facts are some tens of KiB, and the agent's idle memory is budgeted.
constexpr const char* kSettings =
    "PRAGMA synchronous = FULL; PRAGMA cache_size = -64; PRAGMA mmap_size = 0; "
    "PRAGMA wal_autocheckpoint = 64; PRAGMA trusted_schema = OFF";

Result<Database> OpenFile(const std::string& name, int flags) {
  sqlite3* handle = nullptr;
  // NOMUTEX: the store has a mutex of its own.
  const int code = ::sqlite3_open_v2(name.c_str(), &handle, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  Database database(handle);
  if (code != SQLITE_OK) return SqliteError(handle, code, "opening");
  ::sqlite3_extended_result_codes(handle, 1);
  ::sqlite3_busy_timeout(handle, kBusyTimeoutMs);
  ::sqlite3_db_config(handle, SQLITE_DBCONFIG_LOOKASIDE, nullptr, 0, 0);
  ::sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  // Until we know that the file is ours, closing it must not change it.
  ::sqlite3_db_config(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  RETURN_IF_ERROR(Execute(handle, kSettings));
  return database;
}

// Ours, whole, and of a version we know; returns that version. Reads every page: there are few.
Result<int> Check(sqlite3* database) {
  ASSIGN_OR_RETURN(const int version, ReadVersion(database));
  ASSIGN_OR_RETURN(const std::string verdict, QueryText(database, "PRAGMA quick_check(1)"));
  if (verdict != "ok") return absl::DataLossError(verdict);
  return version;
}

Result<Database> OpenChecked(const std::string& path) {
  // A database of no length is a new one, and SQLite would throw away the -wal beside it: that is
  // a file that lost its content.
  struct stat database_file{};
  struct stat wal{};
  if (::stat(path.c_str(), &database_file) == 0 && database_file.st_size == 0 &&
      ::stat(absl::StrCat(path, "-wal").c_str(), &wal) == 0 && wal.st_size > 0) {
    return absl::DataLossError("it is empty, with a -wal file beside it");
  }
  ASSIGN_OR_RETURN(Database database, OpenFile(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE));
  // SQLite opens a file that it may not write read-only, and says so only here.
  if (::sqlite3_db_readonly(database.get(), "main") == 1) {
    return absl::PermissionDeniedError("may not be written; run as root, on a writable mount");
  }
  ASSIGN_OR_RETURN(const int version, Check(database.get()));
  // Does nothing on a file that is in WAL mode already.
  ASSIGN_OR_RETURN(const std::string mode, QueryText(database.get(), "PRAGMA journal_mode = WAL"));
  if (mode != "wal") {
    return absl::FailedPreconditionError(
        absl::StrCat("journal mode is \"", mode,
                     "\", not WAL; keep the state on a local file system with shared memory"));
  }
  if (version != NewestVersion()) RETURN_IF_ERROR(Migrate(database.get()));
  ::sqlite3_db_config(database.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, nullptr);
  return database;
}

Result<int> CheckReadable(const Result<Database>& database) {
  if (!database.ok()) return database.status();
  return Check(database->get());
}

}  // namespace

Result<Database> OpenReadOnly(const std::string& path) {
  if (::access(path.c_str(), F_OK) != 0) {
    return absl::NotFoundError(absl::StrCat(path, ": no state yet; the agent makes it"));
  }
  Result<Database> database = OpenFile(path, SQLITE_OPEN_READONLY);
  Result<int> version = CheckReadable(database);
  if (!version.ok() && version.status().code() != absl::StatusCode::kDataLoss &&
      ::access(absl::StrCat(path, "-wal").c_str(), F_OK) != 0) {
    // WAL needs to make its -shm file, which a folder we can't write does not allow. Without a -wal
    // nobody has the file open, so it may be read as it stands.
    database = OpenFile(
        absl::StrCat("file:", absl::StrReplaceAll(path, {{"%", "%25"}, {"?", "%3f"}, {"#", "%23"}}),
                     "?immutable=1"),
        SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
    version = CheckReadable(database);
  }
  if (!version.ok()) return Annotate(version.status(), path);
  if (*version == 0) {
    return absl::NotFoundError(absl::StrCat(path, ": empty; the agent fills it at its start"));
  }
  return database;
}

Result<WritableDatabase> OpenReadWrite(const std::string& folder, const std::string& path) {
  RETURN_IF_ERROR(Annotate(MakeFolders(folder, 0700), "making the state folder"));
  Result<Database> database = OpenChecked(path);
  if (database.ok()) return WritableDatabase{*std::move(database), std::nullopt};
  if (!absl::IsDataLoss(database.status())) return Annotate(database.status(), path);

  ASSIGN_OR_RETURN(std::string name, SetAside(path, absl::Now()));
  database = OpenChecked(path);
  if (!database.ok()) return Annotate(database.status(), path);
  return WritableDatabase{*std::move(database), std::move(name)};
}

}  // namespace switchyard::store
