// SPDX-License-Identifier: Apache-2.0
#include "sim/fm/fabric_manager.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sim/fm/abi.h"
#include "sim/fm/listener.h"
#include "sim/fm/table.h"

namespace switchyard::sim {
namespace {

template <typename Pod>
void Append(std::string& bytes, const Pod& pod) {
  bytes.append(reinterpret_cast<const char*>(&pod), sizeof(pod));
}

WireServer::Answer Answer(fmReturn code, const fmFabricPartitionList* list = nullptr) {
  WireReply reply;
  reply.code = code;
  reply.payload_bytes = list == nullptr ? 0 : sizeof(*list);
  WireServer::Answer answer;
  Append(answer.bytes, reply);
  if (list != nullptr) Append(answer.bytes, *list);
  return answer;
}

WireServer::Answer Held() {
  WireServer::Answer answer;
  answer.hold = true;
  return answer;
}

WireServer::Answer Crash() {
  WireReply reply;
  reply.crash = 1;
  WireServer::Answer answer;
  Append(answer.bytes, reply);
  return answer;
}

fmReturn CheckConnect(std::uint32_t version, const FabricManagerFaults& faults) {
  if (faults.connect_code != 0) return faults.connect_code;
  const bool known = version == kConnectV1 || (version == kConnectV2 && !faults.connect_v1_only);
  return known ? FM_SUCCESS : FM_VERSION_MISMATCH;
}

const BoardPartition* Find(const Board& board, int id) {
  const auto found = std::find_if(board.partitions.begin(), board.partitions.end(),
                                  [&](const BoardPartition& p) { return p.id == id; });
  return found == board.partitions.end() ? nullptr : &*found;
}

Status CheckSize(const Board& board) {
  bool fits = board.partitions.size() <= 64;
  for (const BoardPartition& p : board.partitions) fits = fits && p.modules.size() <= 16;
  if (fits) return OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "board ", board.name, ": Fabric Manager lists at most 64 partitions of 16 GPUs"));
}

}  // namespace

FabricManager::FabricManager(Board board, Options options)
    : board_(std::move(board)), options_(std::move(options)), tcp_(options_.tcp) {}

FabricManager::~FabricManager() { Stop(); }

Status FabricManager::Start() {
  RETURN_IF_ERROR(CheckSize(board_));
  absl::MutexLock lock(&mutex_);
  if (server_ != nullptr) return OkStatus();
  ASSIGN_OR_RETURN(std::vector<WireServer::Listener> listeners, Listen());
  server_ = std::make_unique<WireServer>(
      std::move(listeners),
      [this](const WireRequest& request, bool internal) { return AnswerTo(request, internal); },
      [this] {
        absl::MutexLock released_lock(&mutex_);
        --held_calls_;
      });
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

void FabricManager::Stop() {
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
}

bool FabricManager::running() const {
  absl::MutexLock lock(&mutex_);
  return server_ != nullptr;
}

std::string FabricManager::tcp_address() const {
  absl::MutexLock lock(&mutex_);
  return tcp_;
}

Status FabricManager::SetActive(const std::set<int>& ids) {
  std::set<int> modules;
  for (int id : ids) {
    const BoardPartition* partition = Find(board_, id);
    if (partition == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("board ", board_.name, " has no partition ", id));
    }
    for (int module : partition->modules) {
      if (modules.insert(module).second) continue;
      return absl::InvalidArgumentError(absl::StrCat("partition ", id, " shares module ", module,
                                                     " with another one that is to be active"));
    }
  }
  absl::MutexLock lock(&mutex_);
  active_ = ids;
  return OkStatus();
}

std::set<int> FabricManager::active() const {
  absl::MutexLock lock(&mutex_);
  return active_;
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
  absl::MutexLock lock(&mutex_);
  return mutex_.AwaitWithTimeout(
      absl::Condition(+[](const int* held) { return *held > 0; }, &held_calls_), timeout);
}

WireServer::Answer FabricManager::AnswerTo(const WireRequest& request, bool internal) {
  using Hang = FabricManagerFaults::Hang;
  absl::MutexLock lock(&mutex_);
  const bool is_connect = request.call == WireCall::kConnect;
  if (faults_.hang == (is_connect ? Hang::kConnect : Hang::kList)) {
    ++held_calls_;
    return Held();
  }
  WireServer::Answer answer;
  if (is_connect) {
    answer = Answer(CheckConnect(request.version, faults_));
  } else if (faults_.crash_library) {
    answer = Crash();
  } else if (internal) {
    answer = Answer(FM_UNINITIALIZED);
  } else if (faults_.list_code != 0) {
    answer = Answer(faults_.list_code);
  } else if (request.version != kPartitionList) {
    answer = Answer(FM_VERSION_MISMATCH);
  } else {
    answer =
        Answer(FM_SUCCESS, MakeList(board_, active_, options_.zero_pci_bus_ids, faults_).get());
  }
  answer.latency = faults_.latency;
  return answer;
}

}  // namespace switchyard::sim
