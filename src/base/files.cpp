// SPDX-License-Identifier: Apache-2.0
#include "base/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"

namespace switchyard {

Result<std::string> ReadFile(const std::string& path, size_t max_bytes) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoError(errno, path);
  std::string content;
  char buffer[4096];
  while (true) {
    const ssize_t got = ::read(fd.get(), buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoError(errno, path);
    if (got == 0) return content;
    content.append(buffer, static_cast<size_t>(got));
    if (content.size() > max_bytes) {
      return absl::OutOfRangeError(absl::StrCat(path, ": longer than ", max_bytes, " bytes"));
    }
  }
}

Result<std::string> ReadLink(const std::string& path) {
  char buffer[PATH_MAX];
  const ssize_t length = ::readlink(path.c_str(), buffer, sizeof(buffer));
  if (length < 0) return ErrnoError(errno, path);
  return std::string(buffer, static_cast<size_t>(length));
}

Result<std::vector<std::string>> ListFolder(const std::string& path) {
  DIR* dir = ::opendir(path.c_str());
  if (dir == nullptr) return ErrnoError(errno, path);
  const absl::Cleanup close = [dir] { ::closedir(dir); };
  std::vector<std::string> names;
  while (true) {
    errno = 0;
    const dirent* entry = ::readdir(dir);
    if (entry == nullptr) {
      if (errno != 0) return ErrnoError(errno, path);
      break;
    }
    const absl::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Status MakeFolders(const std::string& path, mode_t mode) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    if (::mkdir(part.c_str(), mode) != 0 && errno != EEXIST) return ErrnoError(errno, part);
    if (slash == std::string::npos) break;
  }
  struct stat made{};
  if (::stat(path.c_str(), &made) != 0) return ErrnoError(errno, path);
  if (!S_ISDIR(made.st_mode)) return ErrnoError(ENOTDIR, path);
  return OkStatus();
}

Status WriteFileAtomically(const std::string& path, absl::string_view content, mode_t mode) {
  const std::string temporary = absl::StrCat(path, ".", ::getpid(), ".tmp");
  UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
  if (!fd.valid()) return ErrnoError(errno, temporary);
  absl::Cleanup remove = [&] { ::unlink(temporary.c_str()); };
  for (size_t done = 0; done < content.size();) {
    const ssize_t wrote = ::write(fd.get(), content.data() + done, content.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return ErrnoError(errno, temporary);
    done += static_cast<size_t>(wrote);
  }
  if (::fchmod(fd.get(), mode) != 0 || ::fsync(fd.get()) != 0) return ErrnoError(errno, temporary);
  fd.reset();
  if (::rename(temporary.c_str(), path.c_str()) != 0) return ErrnoError(errno, path);
  std::move(remove).Cancel();
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const UniqueFd folder_fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder_fd.valid() || ::fsync(folder_fd.get()) != 0) return ErrnoError(errno, folder);
  return OkStatus();
}

}  // namespace switchyard
