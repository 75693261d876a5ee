// SPDX-License-Identifier: Apache-2.0
#pragma once

// The one SQLite file: remembered facts as (kind, key) -> value, durable when Put returns
// (WAL, synchronous=FULL). What the facts mean is their owners' business. One connection; any
// thread, serialised inside.

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "base/status.h"

struct sqlite3;
struct sqlite3_stmt;

namespace switchyard::store {

class Store {
 public:
  enum class Mode { kReadWrite, kReadOnly };

  struct Opened {
    std::unique_ptr<Store> store;
    // Set if the file was no database of ours: it was renamed to this name and a new one begun.
    std::optional<std::string> set_aside;
  };

  // The file is <folder>/switchyard.db; kReadWrite makes folder (0700) and file if missing. A newer
  // schema is kFailedPrecondition and touches nothing; a corrupt file is set aside (kReadWrite) or
  // kDataLoss (kReadOnly); kReadOnly without a file is kNotFound.
  [[nodiscard]] static Result<Opened> Open(const std::string& folder, Mode mode);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  [[nodiscard]] Result<std::optional<std::string>> Get(absl::string_view kind,
                                                       absl::string_view key);
  [[nodiscard]] Result<std::map<std::string, std::string>> List(absl::string_view kind);
  // Writes nothing if that is the value already. At most 1 MiB (kInvalidArgument).
  [[nodiscard]] Status Put(absl::string_view kind, absl::string_view key, absl::string_view value);
  [[nodiscard]] Status Remove(absl::string_view kind, absl::string_view key);

 private:
  enum Query { kGet, kList, kPut, kRemove, kQueryCount };
  class Use;  // one use of a prepared statement

  Store(std::string path, sqlite3* database) : path_(std::move(path)), database_(database) {}
  // Prepared at its first use, then kept.
  [[nodiscard]] Result<sqlite3_stmt*> Prepared(Query query) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] Status Change(Query query, std::initializer_list<absl::string_view> parameters)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string path_;
  absl::Mutex mutex_;
  sqlite3* const database_;
  std::array<sqlite3_stmt*, kQueryCount> statements_ ABSL_GUARDED_BY(mutex_) = {};
};

}  // namespace switchyard::store
