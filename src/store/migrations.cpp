// SPDX-License-Identifier: Apache-2.0
#include "store/migrations.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "store/sqlite.h"

namespace switchyard::store {
namespace {

constexpr const char* kSteps[] = {
    // 1: remembered facts.
    "CREATE TABLE fact (kind TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, "
    "PRIMARY KEY (kind, key)) STRICT, WITHOUT ROWID;",
};

Status RunSteps(sqlite3* database) {
  // Read again inside the transaction: another process may have been faster.
  ASSIGN_OR_RETURN(const int from, ReadVersion(database));
  for (int version = from; version < NewestVersion(); ++version) {
    RETURN_IF_ERROR(Execute(database, kSteps[version]));
  }
  return Execute(database, absl::StrCat("PRAGMA application_id = ", kApplicationId,
                                        "; PRAGMA user_version = ", NewestVersion()));
}

}  // namespace

int NewestVersion() { return static_cast<int>(std::size(kSteps)); }

Result<int> ReadVersion(sqlite3* database) {
  ASSIGN_OR_RETURN(const int version, QueryInt(database, "PRAGMA user_version"));
  ASSIGN_OR_RETURN(const int application, QueryInt(database, "PRAGMA application_id"));
  if (application == kApplicationId) {
    if (version <= 0) return absl::DataLossError(absl::StrCat("schema version ", version));
    if (version <= NewestVersion()) return version;
    return absl::FailedPreconditionError(absl::StrCat(
        "schema version ", version, " is newer than ", NewestVersion(),
        ", the newest this switchyard knows; start the newer switchyard again, or move the file "
        "away to begin without what it remembers"));
  }
  ASSIGN_OR_RETURN(const int objects, QueryInt(database, "SELECT count(*) FROM sqlite_schema"));
  if (application == 0 && version == 0 && objects == 0) return 0;
  return absl::DataLossError(absl::StrCat("it is another program's database (application id ",
                                          application, ", schema version ", version, ")"));
}

Status Migrate(sqlite3* database) {
  RETURN_IF_ERROR(Execute(database, "BEGIN IMMEDIATE"));
  const Status done = RunSteps(database);
  if (done.ok()) return Execute(database, "COMMIT");
  (void)Execute(database, "ROLLBACK");
  return done;
}

}  // namespace switchyard::store
