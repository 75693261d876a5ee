// SPDX-License-Identifier: Apache-2.0
#pragma once

// One process as <root>/proc shows it. Inside src/pci only; any thread. Formats: proc(5) and the
// kernel's Documentation/filesystems/proc.rst.

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/host_root.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace switchyard::pci {

class Processes {
 public:
  // kFailedPrecondition, kPermissionDenied as FindHolders.
  [[nodiscard]] static Result<Processes> OfHost(const HostRoot& root);

  [[nodiscard]] const std::string& path() const { return path_; }  // <root>/proc
  [[nodiscard]] int folder() const { return folder_.get(); }
  // This process's own number there; 0 where it is not listed (a copy of somebody's /proc).
  [[nodiscard]] pid_t Self() const;

  // The file `name` of the process ("comm", "task/12/stat"), at most 64 KiB. kNotFound if the
  // process is gone.
  [[nodiscard]] Result<std::string> Read(pid_t pid, const std::string& name) const;

 private:
  Processes(std::string path, UniqueFd folder)
      : path_(std::move(path)), folder_(std::move(folder)) {}

  std::string path_;
  UniqueFd folder_;
};

// What a "stat" file says of a thread (or of the process, by its first thread).
struct ThreadState {
  bool kernel = false;   // a thread of the kernel: has no files of anybody
  bool exiting = false;  // is closing its files
  bool over = false;     // has closed them: a zombie
  int threads = 0;       // of its process
};
// kInvalidArgument names the text if it is none.
[[nodiscard]] Result<ThreadState> ParseStat(absl::string_view stat);

// The deepest of the paths in a "cgroup" file: the hierarchies of cgroup v1 may each have one, and
// some are just "/". Empty if it has none.
[[nodiscard]] std::string DeepestCgroup(absl::string_view cgroup);

}  // namespace switchyard::pci
