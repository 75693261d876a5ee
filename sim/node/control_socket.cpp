// SPDX-License-Identifier: Apache-2.0
#include "sim/node/control_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace switchyard::sim {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxRequest = 64 << 10;
constexpr size_t kMaxAnswer = 4 << 20;
constexpr size_t kMaxConnections = 16;

Result<sockaddr_un> SocketAddress(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": longer than a socket's path may be"));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

// Until the other side has written all.
Result<std::string> ReadAll(int fd, size_t most) {
  std::string text;
  char buffer[16384];
  while (true) {
    const ssize_t n = recv(fd, buffer, sizeof(buffer), 0);
    if (n < 0 && errno == EINTR) continue;
    // A side that closes before it has read all resets the connection behind its last bytes.
    if (n == 0 || (n < 0 && errno == ECONNRESET && !text.empty())) return text;
    if (n < 0) return ErrnoError(errno, "reading from the control socket");
    text.append(buffer, n);
    if (text.size() > most) return absl::OutOfRangeError("a message is too long");
  }
}

// Says that all is written by shutting the direction down.
Status WriteAll(int fd, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t n = send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError(errno, "writing to the control socket");
    text.remove_prefix(n);
  }
  shutdown(fd, SHUT_WR);
  return OkStatus();
}

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

Result<std::unique_ptr<ControlServer>> ControlServer::Start(const std::string& path,
                                                            Handler handler) {
  ASSIGN_OR_RETURN(const sockaddr_un address, SocketAddress(path));
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return ErrnoError(errno, "making the control socket");
  unlink(path.c_str());
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(fd.get(), 8) != 0) {
    return ErrnoError(errno, absl::StrCat("listening on ", path));
  }
  return std::unique_ptr<ControlServer>(new ControlServer(path, std::move(fd), std::move(handler)));
}

ControlServer::ControlServer(std::string path, UniqueFd listener, Handler handler)
    : path_(std::move(path)), listener_(std::move(listener)), handler_(std::move(handler)) {
  watcher_ = std::make_unique<FdWatcher>("sim-control", listener_.get(), [this] { Accept(); });
}

ControlServer::~ControlServer() {
  watcher_.reset();
  unlink(path_.c_str());
  Reap(/*all=*/true);
}

void ControlServer::Accept() {
  UniqueFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!fd.valid()) return;
  Reap(/*all=*/false);
  absl::MutexLock lock(&mutex_);
  if (connections_.size() >= kMaxConnections) {
    (void)WriteAll(fd.get(), Dump({{"error", "16 commands are in progress; try again later"}}));
    return;
  }
  Connection& connection = connections_.emplace_back();
  connection.fd = std::move(fd);
  connection.thread = std::thread([this, &connection] { Serve(connection); });
}

void ControlServer::Serve(Connection& connection) {
  const int fd = connection.fd.get();
  const Result<std::string> text = ReadAll(fd, kMaxRequest);
  if (text.ok()) {
    const Json request = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
    Result<Json> result = request.is_object()
                              ? handler_(request)
                              : absl::InvalidArgumentError("the request is no JSON object");
    // Whoever asked may be gone: that changes nothing here.
    (void)WriteAll(fd, Dump(result.ok() ? Json{{"result", *result}}
                                        : Json{{"error", std::string(result.status().message())}}));
  }
  // The descriptor is closed when the thread is joined; the other side is let go now.
  shutdown(fd, SHUT_RDWR);
  absl::MutexLock lock(&mutex_);
  connection.done = true;
}

// Joins threads that have ended, or all of them, and closes their connections.
void ControlServer::Reap(bool all) {
  std::list<Connection> ended;
  {
    absl::MutexLock lock(&mutex_);
    for (auto it = connections_.begin(); it != connections_.end();) {
      const auto next = std::next(it);
      // One that has not sent its request yet won't be heard any more.
      if (all) shutdown(it->fd.get(), SHUT_RD);
      if (all || it->done) ended.splice(ended.end(), connections_, it);
      it = next;
    }
  }
  for (Connection& connection : ended) connection.thread.join();
}

Result<Json> AskSimulator(const std::string& path, const Json& request) {
  ASSIGN_OR_RETURN(const sockaddr_un address, SocketAddress(path));
  const UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return ErrnoError(errno, "making a socket");
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return absl::UnavailableError(
        absl::StrCat("no simulator listens on ", path, " (", strerror(errno),
                     "): start one with `switchyard-sim up`, or name its folder with --dir"));
  }
  // One that is refused may be answered before it is read.
  const Status sent = WriteAll(fd.get(), Dump(request));
  ASSIGN_OR_RETURN(std::string text, ReadAll(fd.get(), kMaxAnswer));
  if (text.empty()) RETURN_IF_ERROR(sent);
  const Json answer = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object()) {
    return absl::UnavailableError("the simulator ended before it answered; see its log");
  }
  if (answer.contains("error")) return absl::UnknownError(answer["error"].get<std::string>());
  return answer["result"];
}

}  // namespace switchyard::sim
