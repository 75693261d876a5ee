// SPDX-License-Identifier: Apache-2.0
#include "sim/sysfs/folder_edit.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/unique_fd.h"

namespace switchyard::sim {

namespace fs = std::filesystem;

bool FolderEdit::Exists(const std::string& path) const {
  std::error_code error;
  return fs::exists(fs::symlink_status(Path(path), error));
}

Status FolderEdit::Folder(const std::string& path) { return MakeFolders(Path(path)); }

Status FolderEdit::Write(const std::string& path, absl::string_view content) {
  const std::string full = Path(path);
  const UniqueFd fd(open(full.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644));
  if (!fd.valid()) return ErrnoError(errno, absl::StrCat("writing ", full));
  if (write(fd.get(), content.data(), content.size()) != static_cast<ssize_t>(content.size())) {
    return ErrnoError(errno, absl::StrCat("writing ", full));
  }
  return OkStatus();
}

Status FolderEdit::Link(const std::string& path, const std::string& target) {
  const fs::path relative = fs::path(target).lexically_relative(fs::path(path).parent_path());
  const std::string full = Path(path);
  if (symlink(relative.c_str(), full.c_str()) == 0) return OkStatus();
  if (errno != EEXIST || unlink(full.c_str()) != 0 ||
      symlink(relative.c_str(), full.c_str()) != 0) {
    return ErrnoError(errno, absl::StrCat("linking ", full));
  }
  return OkStatus();
}

Status FolderEdit::Remove(const std::string& path) {
  std::error_code error;
  fs::remove_all(Path(path), error);
  if (error) return ErrnoError(error.value(), absl::StrCat("removing ", Path(path)));
  return OkStatus();
}

Status FolderEdit::RemoveIfEmpty(const std::string& path) {
  const std::string full = Path(path);
  if (::rmdir(full.c_str()) == 0 || errno == ENOENT || errno == ENOTEMPTY) return OkStatus();
  return ErrnoError(errno, absl::StrCat("removing ", full));
}

}  // namespace switchyard::sim
