// SPDX-License-Identifier: Apache-2.0
#include "kube/socket_files.h"

#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/files.h"

namespace switchyard::kube {
namespace {

constexpr char kPrefix[] = "switchyard-";
constexpr char kSuffix[] = ".sock";
constexpr size_t kMaxTail = 24;  // of the resource's name in the file's: paths are short

bool IsOurs(absl::string_view name) {
  return absl::StartsWith(name, kPrefix) && absl::EndsWith(name, kSuffix);
}

// Whether a connection is refused: the socket's owner is gone.
bool IsDead(const std::string& path) {
  sockaddr_un address{};
  if (path.size() > kMaxSocketPath) return false;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return fd.valid() &&
         ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 &&
         errno == ECONNREFUSED;
}

}  // namespace

std::optional<SocketId> StatSocket(const std::string& path) {
  struct stat found{};
  if (::stat(path.c_str(), &found) != 0 || !S_ISSOCK(found.st_mode)) return std::nullopt;
  return SocketId{found.st_dev, found.st_ino,
                  std::int64_t{found.st_mtim.tv_sec} * 1'000'000'000 + found.st_mtim.tv_nsec};
}

std::string NewSocketName(absl::string_view resource) {
  const absl::string_view tail = resource.substr(resource.rfind('/') + 1).substr(0, kMaxTail);
  return absl::StrCat(kPrefix, tail, "-", absl::StrFormat("%08x", std::random_device()()), kSuffix);
}

int RemoveDeadSockets(const std::string& folder) {
  int removed = 0;
  for (const std::string& name : ListFolder(folder).value_or(std::vector<std::string>())) {
    const std::string path = absl::StrCat(folder, "/", name);
    if (!IsOurs(name) || !StatSocket(path).has_value() || !IsDead(path)) continue;
    if (::unlink(path.c_str()) == 0) ++removed;
  }
  return removed;
}

SocketWatch::SocketWatch(std::string folder)
    : folder_(std::move(folder)), fd_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {}

void SocketWatch::Arm() {
  // A folder that is not there yet is a normal state: the caller comes again.
  (void)::inotify_add_watch(fd_.get(), folder_.c_str(),
                            IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF |
                                IN_MOVE_SELF | IN_ONLYDIR);
}

bool SocketWatch::Drain() {
  bool concerns = false;
  alignas(inotify_event) char buffer[4096];
  while (true) {
    const ssize_t got = ::read(fd_.get(), buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return concerns;
    for (ssize_t at = 0; at < got;) {
      inotify_event event;
      std::memcpy(&event, buffer + at, sizeof(event));
      const absl::string_view name =
          event.len == 0 ? absl::string_view() : buffer + at + sizeof(event);
      // No name: about the folder itself, or events were lost.
      concerns = concerns || name.empty() || name == kKubeletSocket || IsOurs(name);
      at += static_cast<ssize_t>(sizeof(event) + event.len);
    }
  }
}

}  // namespace switchyard::kube
