// SPDX-License-Identifier: Apache-2.0
// FabricManager: what it answers to whom.
#include <algorithm>
#include <iterator>
#include <utility>

#include "sim/fm/abi.h"
#include "sim/fm/fabric_manager.h"
#include "sim/fm/table.h"

namespace switchyard::sim {
namespace {

using Hang = FabricManagerFaults::Hang;

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

bool IsChange(WireCall call) {
  return call == WireCall::kActivate || call == WireCall::kDeactivate ||
         call == WireCall::kSetActivated;
}

bool Hangs(WireCall call, Hang hang) {
  switch (call) {
    case WireCall::kConnect:
      return hang == Hang::kConnect;
    case WireCall::kListPartitions:
      return hang == Hang::kList;
    case WireCall::kActivate:
      return hang == Hang::kActivate;
    case WireCall::kDeactivate:
      return hang == Hang::kDeactivate;
    case WireCall::kSetActivated:
      return hang == Hang::kSetActivated;
  }
  return false;
}

}  // namespace

WireServer::Answer FabricManager::AnswerTo(const WireRequest& request, bool internal) {
  absl::MutexLock lock(&mutex_);
  ++calls_[request.call];
  if (Hangs(request.call, faults_.hang)) {
    ++held_calls_;
    return Held();
  }
  WireServer::Answer answer;
  if (request.call == WireCall::kConnect) {
    answer = Answer(CheckConnect(request.version, faults_));
  } else if (internal) {
    answer = faults_.crash_library ? Crash() : Answer(FM_UNINITIALIZED);
  } else if (request.call == WireCall::kListPartitions) {
    answer = AnswerToList(request);
  } else if (IsChange(request.call) && faults_.late_changes) {
    return HoldLateChange(request);
  } else if (IsChange(request.call) && faults_.change_time > absl::ZeroDuration()) {
    return TakeTimeToChange(request);
  } else {
    const fmReturn code = Change(request);
    answer = faults_.crash_library ? Crash() : Answer(code);
  }
  answer.latency = faults_.latency;
  return answer;
}

WireServer::Answer FabricManager::AnswerToList(const WireRequest& request) {
  if (faults_.crash_library) return Crash();
  if (faults_.list_code != 0) return Answer(faults_.list_code);
  if (partitions_.waiting()) return Answer(faults_.waiting_code);
  if (request.version != kPartitionList) return Answer(FM_VERSION_MISMATCH);
  return Answer(FM_SUCCESS,
                MakeList(board_, partitions_.active(), options_.zero_pci_bus_ids, faults_).get());
}

WireServer::Answer FabricManager::HoldLateChange(const WireRequest& request) {
  ++held_calls_;
  WireServer::Answer answer = Held();
  answer.when_gone = [this, request] {
    absl::MutexLock lock(&mutex_);
    (void)Change(request);
  };
  return answer;
}

WireServer::Answer FabricManager::TakeTimeToChange(const WireRequest& request) {
  WireServer::Answer answer;
  answer.latency = faults_.change_time;
  answer.work = [this, request] {
    absl::MutexLock lock(&mutex_);
    return Answer(Change(request)).bytes;
  };
  return answer;
}

fmReturn FabricManager::Change(const WireRequest& request) {
  const auto injected = faults_.change_codes.find(request.call);
  if (injected != faults_.change_codes.end()) return injected->second;
  const std::span<const std::uint32_t> ids(
      request.ids, std::min<std::size_t>(request.count, std::size(request.ids)));
  if (request.call == WireCall::kSetActivated) {
    if (request.version != kActivatedList) return FM_VERSION_MISMATCH;
    return faults_.no_effect ? FM_SUCCESS : partitions_.SetActivated(ids);
  }
  if (partitions_.waiting()) return faults_.waiting_code;
  if (request.count != 1) return FM_BADPARAM;
  const BoardPartition* partition = board_.FindPartition(static_cast<int>(request.ids[0]));
  if (partition == nullptr || !IsListed(board_, *partition, faults_)) return FM_BADPARAM;
  if (faults_.no_effect) return FM_SUCCESS;
  return request.call == WireCall::kActivate ? partitions_.Activate(partition->id)
                                             : partitions_.Deactivate(partition->id);
}

fmReturn FabricManager::ChangeFromHere(WireCall call, std::span<const std::uint32_t> ids) {
  absl::MutexLock lock(&mutex_);
  if (!up_) return FM_CONNECTION_NOT_VALID;
  if (call == WireCall::kSetActivated) return partitions_.SetActivated(ids);
  if (partitions_.waiting()) return faults_.waiting_code;
  const int id = static_cast<int>(ids.front());
  return call == WireCall::kActivate ? partitions_.Activate(id) : partitions_.Deactivate(id);
}

fmReturn FabricManager::Activate(int id) {
  const auto wire_id = static_cast<std::uint32_t>(id);
  return ChangeFromHere(WireCall::kActivate, {&wire_id, 1});
}

fmReturn FabricManager::Deactivate(int id) {
  const auto wire_id = static_cast<std::uint32_t>(id);
  return ChangeFromHere(WireCall::kDeactivate, {&wire_id, 1});
}

fmReturn FabricManager::SetActivated(std::span<const std::uint32_t> ids) {
  return ChangeFromHere(WireCall::kSetActivated, ids);
}

}  // namespace switchyard::sim
