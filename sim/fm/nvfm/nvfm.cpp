// SPDX-License-Identifier: Apache-2.0
// The simulator's libnvfm.so.1: libnvfm's C functions over the simulator's wire. As the real one:
// calls before fmLibInit are refused, it can be initialised once a process, no call but fmConnect
// has a timeout, a timeout of 0 fails. One caller at a time, since the real one promises no more.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <set>
#include <string>

#include "sim/fm/abi.h"
#include "sim/fm/wire.h"

namespace switchyard::sim {
namespace {

struct Connection {
  int fd;
};

bool initialized = false;
bool was_initialized = false;  // stays true: a second fmLibInit fails even after fmLibShutdown

std::set<fmHandle>& Handles() {
  static std::set<fmHandle> handles;
  return handles;
}

// A real defect would die like this, whatever handler the program has installed.
[[noreturn]] void DieBySegmentationFault() {
  ::prctl(PR_SET_DUMPABLE, 0);  // no core file
  ::signal(SIGSEGV, SIG_DFL);
  ::raise(SIGSEGV);
  std::abort();
}

bool SendAll(int fd, const void* data, std::size_t size) {
  return ::send(fd, data, size, MSG_NOSIGNAL) == static_cast<ssize_t>(size);
}

bool ReceiveAll(int fd, void* data, std::size_t size) {
  return ::recv(fd, data, size, MSG_WAITALL) == static_cast<ssize_t>(size);
}

WireRequest MakeRequest(WireCall call, std::uint32_t version) {
  WireRequest request;
  request.call = call;
  request.version = version;
  return request;
}

// One request and its reply; `payload` of `payload_bytes` is filled on success.
fmReturn Exchange(int fd, const WireRequest& request, void* payload, std::size_t payload_bytes) {
  WireReply reply;
  errno = 0;
  if (!SendAll(fd, &request, sizeof(request)) || !ReceiveAll(fd, &reply, sizeof(reply))) {
    return errno == EAGAIN ? FM_TIMEOUT : FM_CONNECTION_NOT_VALID;
  }
  if (reply.magic != kWireMagic) return FM_CONNECTION_NOT_VALID;
  if (reply.crash != 0) DieBySegmentationFault();
  if (reply.code != FM_SUCCESS) return reply.code;
  if (reply.payload_bytes != payload_bytes) return FM_GENERIC_ERROR;
  if (payload_bytes > 0 && !ReceiveAll(fd, payload, payload_bytes)) return FM_CONNECTION_NOT_VALID;
  return FM_SUCCESS;
}

// Applies to connect(2), send and recv alike; 0 = no limit.
void SetTimeout(int fd, std::uint32_t ms) {
  timeval time{};
  time.tv_sec = ms / 1000;
  time.tv_usec = static_cast<suseconds_t>(ms % 1000) * 1000;
  (void)::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time));
  (void)::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
}

bool ParseInet(const std::string& text, sockaddr_in& inet) {
  const auto colon = text.rfind(':');
  if (colon == std::string::npos) return false;
  inet.sin_family = AF_INET;
  inet.sin_port = htons(static_cast<std::uint16_t>(std::atoi(text.c_str() + colon + 1)));
  return ::inet_pton(AF_INET, text.substr(0, colon).c_str(), &inet.sin_addr) == 1;
}

bool ParseUnix(const std::string& text, sockaddr_un& local) {
  if (text.size() >= sizeof(local.sun_path)) return false;
  local.sun_family = AF_UNIX;
  std::memcpy(local.sun_path, text.c_str(), text.size() + 1);
  return true;
}

fmReturn OpenSocket(const std::string& text, bool is_unix, std::uint32_t timeout_ms, int& fd) {
  sockaddr_in inet{};
  sockaddr_un local{};
  if (is_unix ? !ParseUnix(text, local) : !ParseInet(text, inet)) return FM_BADPARAM;
  fd = ::socket(is_unix ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return FM_GENERIC_ERROR;
  SetTimeout(fd, timeout_ms);
  const int failed = is_unix ? ::connect(fd, reinterpret_cast<sockaddr*>(&local), sizeof(local))
                             : ::connect(fd, reinterpret_cast<sockaddr*>(&inet), sizeof(inet));
  if (failed == 0) return FM_SUCCESS;
  return errno == EINPROGRESS || errno == EAGAIN ? FM_TIMEOUT : FM_CONNECTION_NOT_VALID;
}

// How the caller names the kind of address: version 2 by addressType alone.
bool AddressKind(const fmConnectParams& params, bool& is_unix) {
  if (params.version == kConnectV1) {
    is_unix = params.addressIsUnixSocket != 0;
    return true;
  }
  is_unix = params.addressType == kAddressUnix;
  return is_unix || params.addressType == kAddressInet;
}

fmReturn Connect(const fmConnectParams& params, fmHandle* handle) {
  if (params.version != kConnectV1 && params.version != kConnectV2) return FM_VERSION_MISMATCH;
  bool is_unix = false;
  if (!AddressKind(params, is_unix) || params.timeoutMs == 0) return FM_BADPARAM;
  const std::size_t length = ::strnlen(params.addressInfo, sizeof(params.addressInfo));
  int fd = -1;
  fmReturn code =
      OpenSocket(std::string(params.addressInfo, length), is_unix, params.timeoutMs, fd);
  if (code == FM_SUCCESS) {
    code = Exchange(fd, MakeRequest(WireCall::kConnect, params.version), nullptr, 0);
  }
  if (code != FM_SUCCESS) {
    if (fd >= 0) ::close(fd);
    return code;
  }
  SetTimeout(fd, 0);
  *handle = *Handles().insert(new Connection{fd}).first;
  return FM_SUCCESS;
}

fmReturn Change(fmHandle handle, const WireRequest& request) {
  if (!initialized) return FM_UNINITIALIZED;
  if (Handles().count(handle) == 0) return FM_BADPARAM;
  return Exchange(static_cast<Connection*>(handle)->fd, request, nullptr, 0);
}

fmReturn ChangeOne(fmHandle handle, WireCall call, std::uint32_t id) {
  WireRequest request = MakeRequest(call, 0);
  request.count = 1;
  request.ids[0] = id;
  return Change(handle, request);
}

void Close(fmHandle handle) {
  auto* const connection = static_cast<Connection*>(handle);
  ::close(connection->fd);
  delete connection;
}

}  // namespace
}  // namespace switchyard::sim

using namespace switchyard::sim;

extern "C" {

#define EXPORTED __attribute__((visibility("default")))
#ifdef SIM_NVFM_READS_ONLY
#define EXPORTED_CHANGE
#else
#define EXPORTED_CHANGE EXPORTED
#endif

EXPORTED fmReturn fmLibInit() {
  if (was_initialized) return FM_IN_USE;
  initialized = was_initialized = true;
  return FM_SUCCESS;
}

EXPORTED fmReturn fmLibShutdown() {
  if (!initialized) return FM_UNINITIALIZED;
  for (fmHandle handle : Handles()) Close(handle);
  Handles().clear();
  initialized = false;
  return FM_SUCCESS;
}

EXPORTED fmReturn fmConnect(fmConnectParams* params, fmHandle* handle) {
  if (!initialized) return FM_UNINITIALIZED;
  if (params == nullptr || handle == nullptr) return FM_BADPARAM;
  return Connect(*params, handle);
}

EXPORTED fmReturn fmDisconnect(fmHandle handle) {
  if (!initialized) return FM_UNINITIALIZED;
  if (Handles().erase(handle) == 0) return FM_BADPARAM;
  Close(handle);
  return FM_SUCCESS;
}

EXPORTED fmReturn fmGetSupportedFabricPartitions(fmHandle handle, fmFabricPartitionList* list) {
  if (!initialized) return FM_UNINITIALIZED;
  if (Handles().count(handle) == 0 || list == nullptr) return FM_BADPARAM;
  return Exchange(static_cast<Connection*>(handle)->fd,
                  MakeRequest(WireCall::kListPartitions, list->version), list, sizeof(*list));
}

EXPORTED_CHANGE fmReturn fmActivateFabricPartition(fmHandle handle, std::uint32_t id) {
  return ChangeOne(handle, WireCall::kActivate, id);
}

EXPORTED_CHANGE fmReturn fmDeactivateFabricPartition(fmHandle handle, std::uint32_t id) {
  return ChangeOne(handle, WireCall::kDeactivate, id);
}

EXPORTED_CHANGE fmReturn fmSetActivatedFabricPartitions(fmHandle handle,
                                                        fmActivatedFabricPartitionList* list) {
  if (list == nullptr || list->numPartitions > std::size(list->partitionIds)) return FM_BADPARAM;
  WireRequest request = MakeRequest(WireCall::kSetActivated, list->version);
  request.count = list->numPartitions;
  std::copy_n(list->partitionIds, list->numPartitions, request.ids);
  return Change(handle, request);
}

}  // extern "C"
