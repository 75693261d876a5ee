// SPDX-License-Identifier: Apache-2.0
#include "pci/sysfs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "pci/folder_names.h"

namespace switchyard::pci {
namespace {

constexpr int kFolderFlags = O_PATH | O_DIRECTORY | O_CLOEXEC;
constexpr size_t kPage = 4096;

Status FileError(int error, absl::string_view name) {
  if (error == ENOENT) return absl::NotFoundError(absl::StrCat("the file ", name, " is missing"));
  return ErrnoError(error, name);
}

Result<std::vector<std::string>> ListAt(int at, const char* name) {
  const UniqueFd fd(::openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return FileError(errno, name);
  std::vector<std::string> names;
  const int error = ForEachName(fd.get(), [&names](const char* found) {
    names.emplace_back(found);
    return true;
  });
  if (error != 0) return FileError(error, name);
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::string> ReadAt(int at, const char* name) {
  const UniqueFd fd(::openat(at, name, O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return FileError(errno, name);
  char buffer[kPage];
  const ssize_t got = ::read(fd.get(), buffer, sizeof(buffer));  // sysfs gives all in one read
  if (got < 0) return FileError(errno, name);
  if (static_cast<size_t>(got) == sizeof(buffer))
    return absl::OutOfRangeError(absl::StrCat(name, " is longer than a sysfs file can be"));
  const absl::string_view text(buffer, static_cast<size_t>(got));
  return std::string(absl::StripTrailingAsciiWhitespace(text));
}

Result<std::string> LinkNameAt(int at, const char* name) {
  char target[PATH_MAX];
  const ssize_t got = ::readlinkat(at, name, target, sizeof(target));
  if (got < 0 && errno == EINVAL)
    return absl::FailedPreconditionError(
        absl::StrCat(name, " is not a symbolic link as in sysfs; copy the tree with its links"));
  if (got < 0) return FileError(errno, name);
  const absl::string_view text(target, static_cast<size_t>(got));
  return std::string(text.substr(text.rfind('/') + 1));
}

}  // namespace

Result<Folder> Folder::Open(std::string path) {
  UniqueFd fd(::open(path.c_str(), kFolderFlags));
  if (!fd.valid()) return ErrnoError(errno, path);
  return Folder(std::move(path), std::move(fd));
}

Result<Folder> Folder::OpenChild(const std::string& name) const {
  UniqueFd fd(::openat(fd_.get(), name.c_str(), kFolderFlags));
  if (!fd.valid()) return ErrnoError(errno, name);
  return Folder(absl::StrCat(path_, "/", name), std::move(fd));
}

Result<std::uint64_t> Folder::Inode() const {
  struct stat info = {};
  if (::fstat(fd_.get(), &info) != 0) return ErrnoError(errno, path_);
  return info.st_ino;
}

Result<std::string> Folder::Read(const char* name) const { return ReadAt(fd_.get(), name); }

Result<std::string> Folder::ReadPath(const std::string& path) {
  return ReadAt(AT_FDCWD, path.c_str());
}

Result<std::string> Folder::LinkName(const char* name) const { return LinkNameAt(fd_.get(), name); }

Result<std::string> Folder::LinkNameOfPath(const std::string& path) {
  return LinkNameAt(AT_FDCWD, path.c_str());
}

Result<std::vector<std::string>> Folder::List(const char* name) const {
  return ListAt(fd_.get(), name);
}

Result<std::vector<std::string>> Folder::ListPath(const std::string& path) {
  return ListAt(AT_FDCWD, path.c_str());
}

bool Folder::Has(const std::string& name) const {
  return ::faccessat(fd_.get(), name.c_str(), F_OK, 0) == 0;
}

}  // namespace switchyard::pci
