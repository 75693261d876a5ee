// SPDX-License-Identifier: Apache-2.0
#pragma once

// The one SQLite file: remembered facts as (kind, key) -> value, durable when Put returns
// (WAL, synchronous=FULL). What the facts mean is their owners' business. One connection; any
// thread, serialised inside.

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "base/status.h"

struct sqlite3;

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
  [[nodiscard]] Status Put(absl::string_view kind, absl::string_view key, absl::string_view value);
  [[nodiscard]] Status Remove(absl::string_view kind, absl::string_view key);

 private:
  explicit Store(sqlite3* database) : database_(database) {}
  absl::Mutex mutex_;
  sqlite3* const database_;
};

}  // namespace switchyard::store
