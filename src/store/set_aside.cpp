// SPDX-License-Identifier: Apache-2.0
#include "store/set_aside.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "absl/strings/str_cat.h"

namespace switchyard::store {
namespace {

constexpr int kMaxSameSecond = 100;  // names tried

std::string FreeName(const std::string& path, absl::Time now) {
  const std::string base =
      absl::StrCat(path, ".corrupt-", absl::FormatTime("%Y%m%dT%H%M%SZ", now, absl::UTCTimeZone()));
  std::string name = base;
  for (int i = 1; i < kMaxSameSecond && ::access(name.c_str(), F_OK) == 0; ++i) {
    name = absl::StrCat(base, "-", i);
  }
  return name;
}

}  // namespace

Result<std::string> SetAside(const std::string& path, absl::Time now) {
  const std::string name = FreeName(path, now);
  // The database goes last: were we killed in between, the next start finds it and sets it aside
  // again, while an old -wal beside a new database would be played into it.
  for (const char* suffix : {"-wal", "-shm", ""}) {
    const std::string from = absl::StrCat(path, suffix);
    const std::string to = absl::StrCat(name, suffix);
    if (::access(to.c_str(), F_OK) == 0) {
      return absl::AlreadyExistsError(absl::StrCat(to, ": exists; move it elsewhere"));
    }
    if (::rename(from.c_str(), to.c_str()) != 0 && errno != ENOENT) {
      return ErrnoError(errno, absl::StrCat("renaming ", from, " to ", to));
    }
  }
  return name;
}

}  // namespace switchyard::store
