// SPDX-License-Identifier: Apache-2.0
#include "base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/lock_owner.h"

namespace switchyard {

Result<FileLock> FileLock::TryAcquire(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.valid()) return ErrnoError(errno, path);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return ErrnoError(errno, path);
    const Result<LockOwner> owner = ReadLockOwner(path);
    return absl::UnavailableError(
        absl::StrCat(path, " is held by ", owner.ok() ? owner->Describe() : "another process"));
  }
  return OfLocked(std::move(fd), path);
}

Result<FileLock> FileLock::OfLocked(UniqueFd fd, const std::string& path) {
  const std::string text = LockOwnerText(ThisProcess());
  if (::ftruncate(fd.get(), 0) != 0 ||
      ::pwrite(fd.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    return ErrnoError(errno, path);
  }
  return FileLock(std::move(fd));
}

}  // namespace switchyard
