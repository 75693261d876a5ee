// SPDX-License-Identifier: Apache-2.0
#include "base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"

namespace switchyard {
namespace {

std::string Holder(const std::string& path) {
  const Result<std::string> text = ReadFile(path, 64);
  int pid = 0;
  if (!text.ok() || !absl::SimpleAtoi(absl::StripAsciiWhitespace(*text), &pid)) {
    return "another process";
  }
  Result<std::string> command = ReadFile(absl::StrCat("/proc/", pid, "/cmdline"), 4096);
  if (!command.ok()) return absl::StrCat("process ", pid);
  std::replace(command->begin(), command->end(), '\0', ' ');
  return absl::StrCat("process ", pid, " (", absl::StripAsciiWhitespace(*command), ")");
}

}  // namespace

Result<FileLock> FileLock::TryAcquire(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.valid()) return ErrnoError(errno, path);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return ErrnoError(errno, path);
    return absl::UnavailableError(absl::StrCat(path, " is held by ", Holder(path)));
  }
  const std::string pid = absl::StrCat(::getpid(), "\n");
  if (::ftruncate(fd.get(), 0) != 0 ||
      ::pwrite(fd.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return ErrnoError(errno, path);
  }
  return FileLock(std::move(fd));
}

}  // namespace switchyard
