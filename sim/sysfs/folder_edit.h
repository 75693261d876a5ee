// SPDX-License-Identifier: Apache-2.0
#pragma once

// Edits of a folder tree that stands for sysfs: attribute files, links, folders. Paths are below
// the tree's root. Nothing is synced to disk: the tree is as short-lived as sysfs. Blocking; one
// thread at a time.

#include <string>

#include "absl/strings/string_view.h"
#include "base/status.h"

namespace switchyard::sim {

class FolderEdit {
 public:
  explicit FolderEdit(std::string root) : root_(std::move(root)) {}

  [[nodiscard]] const std::string& root() const { return root_; }
  [[nodiscard]] std::string Path(const std::string& path) const { return root_ + "/" + path; }
  [[nodiscard]] bool Exists(const std::string& path) const;

  [[nodiscard]] Status Folder(const std::string& path);
  // Writes the file whole; its folder must exist.
  [[nodiscard]] Status Write(const std::string& path, absl::string_view content);
  // A link at `path` to `target`, both below the root; written as a relative link, so that a copy
  // of the tree is a tree. Replaces a link that is there.
  [[nodiscard]] Status Link(const std::string& path, const std::string& target);
  // A file, a link, or a folder with all that is in it. Absent is fine.
  [[nodiscard]] Status Remove(const std::string& path);
  // A folder, unless something is in it. Absent is fine.
  [[nodiscard]] Status RemoveIfEmpty(const std::string& path);

 private:
  std::string root_;
};

}  // namespace switchyard::sim
