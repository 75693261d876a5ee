// SPDX-License-Identifier: Apache-2.0
#include "apps/module_map_file.h"

#include "absl/strings/str_cat.h"
#include "base/files.h"

namespace switchyard::apps {
namespace {

constexpr size_t kMaxBytes = 64 * 1024;

}  // namespace

Result<ModuleMapFile> ModuleMapFile::Open(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash != std::string::npos && slash > 0) {
    RETURN_IF_ERROR(MakeFolders(path.substr(0, slash)));
  }
  ASSIGN_OR_RETURN(FileLock lock, FileLock::TryAcquire(absl::StrCat(path, ".lock")));
  ModuleMapFile file(path, std::move(lock));
  const Result<std::string> text = ReadFile(path, kMaxBytes);
  if (absl::IsNotFound(text.status())) return file;
  RETURN_IF_ERROR(text.status());
  Result<fabric::ModuleEntries> entries = fabric::ParseModuleMap(*text, path);
  if (!entries.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(entries.status().message(), ": correct it, or move it away, and try again"));
  }
  file.entries_ = *std::move(entries);
  return file;
}

Status ModuleMapFile::Save() const {
  return WriteFileAtomically(path_, fabric::FormatModuleMap(entries_));
}

}  // namespace switchyard::apps
