// SPDX-License-Identifier: Apache-2.0
#pragma once

// Unix sockets as files in kubelet's folder: whose they are, whether they are still the same, and
// the notice of changes. Blocking calls of microseconds; any thread.

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace switchyard::kube {

inline constexpr char kKubeletSocket[] = "kubelet.sock";
inline constexpr size_t kMaxSocketPath = 107;  // sun_path less its final zero, unix(7)

// Another socket under the same path has another identity: inode numbers are reused, so the time of
// the bind belongs to it. (Not ctime: kubelet may change mode or owner afterwards.)
struct SocketId {
  dev_t device = 0;
  ino_t inode = 0;
  std::int64_t bound_ns = 0;  // mtime
  friend bool operator==(const SocketId&, const SocketId&) = default;
};
// Nothing if there is no socket at `path`.
[[nodiscard]] std::optional<SocketId> StatSocket(const std::string& path);

// A file name of ours for a server of this resource, another one each time:
// "switchyard-GH100_H100_SXM5_80GB-1f2e3d4c.sock". Long resource names are cut.
[[nodiscard]] std::string NewSocketName(absl::string_view resource);

// Removes sockets of ours in `folder` that nobody listens on (a former run was killed). Returns how
// many.
int RemoveDeadSockets(const std::string& folder);

// inotify on a folder, for kubelet's socket and ours.
class SocketWatch {
 public:
  explicit SocketWatch(std::string folder);

  // -1 if the machine has no inotify instance left: then only the periodic look remains.
  [[nodiscard]] int fd() const { return fd_.get(); }
  // (Re)arms the watch: cheap if it is armed, needed again once the folder was replaced.
  void Arm();
  // Reads all that came. True if any of it may concern a socket of kubelet's or ours.
  [[nodiscard]] bool Drain();

 private:
  const std::string folder_;
  UniqueFd fd_;
};

}  // namespace switchyard::kube
