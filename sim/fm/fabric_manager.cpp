// SPDX-License-Identifier: Apache-2.0
#include "sim/fm/fabric_manager.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "sim/fm/listener.h"

namespace switchyard::sim {
namespace {

Status CheckSize(const Board& board) {
  bool fits = board.partitions.size() <= 64;
  for (const BoardPartition& p : board.partitions) fits = fits && p.modules.size() <= 16;
  if (fits) return OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "board ", board.name, ": Fabric Manager lists at most 64 partitions of 16 GPUs"));
}

}  // namespace

FabricManager::FabricManager(Board board, Options options)
    : board_(std::move(board)),
      options_(std::move(options)),
      clock_(options_.clock != nullptr ? *options_.clock : real_clock_),
      tcp_(options_.tcp),
      partitions_(board_, options_.return_codes.value_or(ReturnCodesOf(board_))) {}

FabricManager::~FabricManager() { Stop(); }

Status FabricManager::Start() {
  absl::MutexLock lifecycle_lock(&lifecycle_mutex_);
  return StartLocked();
}

Status FabricManager::StartLocked() {
  RETURN_IF_ERROR(CheckSize(board_));
  if (running()) return OkStatus();
  window_.reset();  // one that has run out may still be removing the sockets
  absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(std::vector<WireServer::Listener> listeners, Listen());
  server_ = std::make_unique<WireServer>(
      std::move(listeners),
      [this](const WireRequest& request, bool internal) { return AnswerTo(request, internal); },
      [this] {
        absl::MutexLock released_lock(&mutex_);
        --held_calls_;
      });
  up_ = true;
  if (partitions_.waiting()) {
    const absl::Duration end = clock_.Monotonic() + kWindow;
    window_ =
        std::make_unique<Worker>("sim-fm-window", clock_, [this, end] { return WatchWindow(end); });
  }
  return OkStatus();
}

Result<std::vector<WireServer::Listener>> FabricManager::Listen() {
  std::vector<WireServer::Listener> listeners;
  if (!tcp_.empty()) {
    ASSIGN_OR_RETURN(TcpListener listener, ListenTcp(tcp_));
    tcp_ = listener.address;
    listeners.push_back({std::move(listener.fd), false});
  }
  if (!options_.unix_socket.empty()) {
    ASSIGN_OR_RETURN(UniqueFd fd, ListenUnix(options_.unix_socket));
    listeners.push_back({std::move(fd), false});
  }
  if (!options_.internal_socket.empty()) {
    ASSIGN_OR_RETURN(UniqueFd fd, ListenUnix(options_.internal_socket));
    listeners.push_back({std::move(fd), true});
  }
  return listeners;
}

absl::Duration FabricManager::WatchWindow(absl::Duration end) {
  {
    absl::MutexLock lock(&mutex_);
    if (!partitions_.waiting()) return absl::InfiniteDuration();
  }
  const absl::Duration left = end - clock_.Monotonic();
  if (left > absl::ZeroDuration()) return left;
  EndServer();
  return absl::InfiniteDuration();
}

void FabricManager::EndServer() {
  std::unique_ptr<WireServer> server;
  {
    absl::MutexLock lock(&mutex_);
    server = std::move(server_);
  }
  if (server == nullptr) return;
  server.reset();  // without the lock: its thread may be in AnswerTo
  for (const std::string& path : {options_.unix_socket, options_.internal_socket}) {
    if (!path.empty()) (void)::unlink(path.c_str());
  }
  absl::MutexLock lock(&mutex_);
  up_ = false;
}

void FabricManager::Stop() {
  absl::MutexLock lifecycle_lock(&lifecycle_mutex_);
  StopLocked();
}

void FabricManager::StopLocked() {
  window_.reset();
  EndServer();
}

Status FabricManager::Restart(Kind kind) {
  absl::MutexLock lifecycle_lock(&lifecycle_mutex_);
  StopLocked();
  {
    absl::MutexLock lock(&mutex_);
    kind == Kind::kWarm ? partitions_.RestartWarm() : partitions_.RestartCold();
  }
  return StartLocked();
}

bool FabricManager::running() const {
  absl::MutexLock lock(&mutex_);
  return up_;
}

std::string FabricManager::tcp_address() const {
  absl::MutexLock lock(&mutex_);
  return tcp_;
}

Status FabricManager::SetActive(const std::set<int>& ids) {
  absl::MutexLock lock(&mutex_);
  return partitions_.SetActive(ids);
}

std::set<int> FabricManager::active() const {
  absl::MutexLock lock(&mutex_);
  return partitions_.active();
}

std::set<int> FabricManager::routed() const {
  absl::MutexLock lock(&mutex_);
  return partitions_.routed();
}

bool FabricManager::waiting() const {
  absl::MutexLock lock(&mutex_);
  return up_ && partitions_.waiting();
}

std::map<WireCall, int> FabricManager::calls() const {
  absl::MutexLock lock(&mutex_);
  return calls_;
}

void FabricManager::SetFaults(FabricManagerFaults faults) {
  absl::MutexLock lock(&mutex_);
  faults_ = std::move(faults);
}

FabricManagerFaults FabricManager::faults() const {
  absl::MutexLock lock(&mutex_);
  return faults_;
}

bool FabricManager::AwaitHeldCall(absl::Duration timeout) const {
  const auto held = [this] {
    mutex_.AssertReaderHeld();
    return held_calls_ > 0;
  };
  absl::MutexLock lock(&mutex_);
  return mutex_.AwaitWithTimeout(absl::Condition(&held), timeout);
}

bool FabricManager::AwaitActive(const std::set<int>& ids, absl::Duration timeout) const {
  const auto active = [this, &ids] {
    mutex_.AssertReaderHeld();
    return partitions_.active() == ids;
  };
  absl::MutexLock lock(&mutex_);
  return mutex_.AwaitWithTimeout(absl::Condition(&active), timeout);
}

bool FabricManager::AwaitStopped(absl::Duration timeout) const {
  const auto stopped = [this] {
    mutex_.AssertReaderHeld();
    return !up_;
  };
  absl::MutexLock lock(&mutex_);
  return mutex_.AwaitWithTimeout(absl::Condition(&stopped), timeout);
}

bool FabricManager::AwaitServing(absl::Duration timeout) const {
  const auto serving = [this] {
    mutex_.AssertReaderHeld();
    return up_ && !partitions_.waiting();
  };
  absl::MutexLock lock(&mutex_);
  return mutex_.AwaitWithTimeout(absl::Condition(&serving), timeout);
}

bool FabricManager::AwaitCalls(WireCall call, int count, absl::Duration timeout) const {
  const auto came = [this, call, count] {
    mutex_.AssertReaderHeld();
    const auto found = calls_.find(call);
    return found != calls_.end() && found->second >= count;
  };
  absl::MutexLock lock(&mutex_);
  return mutex_.AwaitWithTimeout(absl::Condition(&came), timeout);
}

}  // namespace switchyard::sim
