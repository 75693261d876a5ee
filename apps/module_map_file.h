// SPDX-License-Identifier: Apache-2.0
#pragma once

// The module-map file that operators write: read, change and write back as one step, under a lock
// beside it, so that two of them at once lose nothing. The agent reads it without the lock: it is
// replaced as a whole.

#include <string>

#include "base/file_lock.h"
#include "base/status.h"
#include "fabric/module_map.h"

namespace switchyard::apps {

// In the state folder: /run is lost at reboot.
inline constexpr char kOwnModuleMap[] = "/var/lib/switchyard/module-map.json";

class ModuleMapFile {
 public:
  // Makes the folder if missing. An absent file is an empty map; a malformed one is an error.
  [[nodiscard]] static Result<ModuleMapFile> Open(const std::string& path);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] fabric::ModuleEntries& entries() { return entries_; }
  [[nodiscard]] Status Save() const;

 private:
  ModuleMapFile(std::string path, FileLock lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  std::string path_;
  FileLock lock_;
  fabric::ModuleEntries entries_;
};

}  // namespace switchyard::apps
