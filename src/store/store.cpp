// SPDX-License-Identifier: Apache-2.0
#include "store/store.h"

#include "absl/strings/str_cat.h"
#include "store/open.h"
#include "store/sqlite.h"

namespace switchyard::store {
namespace {

constexpr size_t kMaxValue = size_t{1} << 20;

}  // namespace

// Resets the statement at the end, so that no read transaction stays open.
class Store::Use {
 public:
  Use(sqlite3_stmt* statement, std::initializer_list<absl::string_view> parameters)
      : statement_(statement) {
    int index = 0;
    for (const absl::string_view parameter : parameters) {
      ++index;
      // Borrowed until the reset. The value is a blob: any bytes.
      const int size = static_cast<int>(parameter.size());
      const char* bytes = size == 0 ? "" : parameter.data();
      if (index == 3) {
        ::sqlite3_bind_blob(statement_, index, bytes, size, SQLITE_STATIC);
      } else {
        ::sqlite3_bind_text(statement_, index, bytes, size, SQLITE_STATIC);
      }
    }
  }
  ~Use() {
    ::sqlite3_reset(statement_);
    ::sqlite3_clear_bindings(statement_);
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  int Step() { return ::sqlite3_step(statement_); }
  [[nodiscard]] std::string Text(int column) const { return ColumnText(statement_, column); }

 private:
  sqlite3_stmt* const statement_;
};

Result<Store::Opened> Store::Open(const std::string& folder, Mode mode) {
  const std::string path = absl::StrCat(folder, "/switchyard.db");
  if (mode == Mode::kReadOnly) {
    ASSIGN_OR_RETURN(Database database, OpenReadOnly(path));
    return Opened{std::unique_ptr<Store>(new Store(path, database.release())), std::nullopt};
  }
  ASSIGN_OR_RETURN(WritableDatabase opened, OpenReadWrite(folder, path));
  return Opened{std::unique_ptr<Store>(new Store(path, opened.database.release())),
                std::move(opened.set_aside)};
}

Store::~Store() {
  for (sqlite3_stmt* statement : statements_) ::sqlite3_finalize(statement);
  ::sqlite3_close_v2(database_);
}

Result<sqlite3_stmt*> Store::Prepared(Query query) {
  constexpr std::array<absl::string_view, kQueryCount> kSql = {
      "SELECT value FROM fact WHERE kind = ? AND key = ?",
      "SELECT key, value FROM fact WHERE kind = ?",
      "INSERT INTO fact (kind, key, value) VALUES (?, ?, ?) "
      "ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value "
      "WHERE value IS NOT excluded.value",
      "DELETE FROM fact WHERE kind = ? AND key = ?",
  };
  if (statements_[query] == nullptr) {
    Result<Statement> statement = Prepare(database_, kSql[query]);
    if (!statement.ok()) return Annotate(statement.status(), path_);
    statements_[query] = statement->release();
  }
  return statements_[query];
}

Result<std::optional<std::string>> Store::Get(absl::string_view kind, absl::string_view key) {
  absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(sqlite3_stmt * statement, Prepared(kGet));
  Use use(statement, {kind, key});
  const int code = use.Step();
  if (code == SQLITE_ROW) return use.Text(0);
  if (code == SQLITE_DONE) return std::nullopt;
  return SqliteError(database_, code, path_);
}

Status Store::Change(Query query, std::initializer_list<absl::string_view> parameters) {
  ASSIGN_OR_RETURN(sqlite3_stmt * statement, Prepared(query));
  Use use(statement, parameters);
  const int code = use.Step();
  return code == SQLITE_DONE ? OkStatus() : SqliteError(database_, code, path_);
}

Result<std::map<std::string, std::string>> Store::List(absl::string_view kind) {
  absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(sqlite3_stmt * statement, Prepared(kList));
  Use use(statement, {kind});
  std::map<std::string, std::string> facts;
  int code;
  while ((code = use.Step()) == SQLITE_ROW) facts.emplace(use.Text(0), use.Text(1));
  if (code != SQLITE_DONE) return SqliteError(database_, code, path_);
  return facts;
}

Status Store::Put(absl::string_view kind, absl::string_view key, absl::string_view value) {
  if (value.size() > kMaxValue) {
    return absl::InvalidArgumentError(absl::StrCat(kind, " ", key.substr(0, 64), ": ", value.size(),
                                                   " bytes; a fact has at most ", kMaxValue));
  }
  absl::MutexLock lock(&mutex_);
  return Change(kPut, {kind, key, value});
}

Status Store::Remove(absl::string_view kind, absl::string_view key) {
  absl::MutexLock lock(&mutex_);
  return Change(kRemove, {kind, key});
}

}  // namespace switchyard::store
