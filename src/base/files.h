// SPDX-License-Identifier: Apache-2.0
#pragma once

// Small files, read whole and written whole. Blocking; any thread. Every error names the path and
// keeps errno's canonical code.

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/status.h"

namespace switchyard {

// The content of a regular or sysfs file. kOutOfRange if it is longer than `max_bytes`.
[[nodiscard]] Result<std::string> ReadFile(const std::string& path, size_t max_bytes);

// Where a symbolic link points, as written in it.
[[nodiscard]] Result<std::string> ReadLink(const std::string& path);

// Names in a folder, sorted, without "." and "..".
[[nodiscard]] Result<std::vector<std::string>> ListFolder(const std::string& path);

// mkdir -p with `mode` for what it creates.
[[nodiscard]] Status MakeFolders(const std::string& path, mode_t mode = 0755);

// Writes a temporary file beside `path` (name ending in ".tmp"), fsyncs it, renames it over `path`
// and fsyncs the folder: a reader sees the old content or the new, also after a power loss.
[[nodiscard]] Status WriteFileAtomically(const std::string& path, absl::string_view content,
                                         mode_t mode = 0644);

}  // namespace switchyard
