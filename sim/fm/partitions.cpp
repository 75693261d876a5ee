// SPDX-License-Identifier: Apache-2.0
#include "sim/fm/partitions.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace switchyard::sim {
namespace {

bool ShareAModule(const BoardPartition& a, const BoardPartition& b) {
  return std::any_of(a.modules.begin(), a.modules.end(), [&](int module) {
    return std::find(b.modules.begin(), b.modules.end(), module) != b.modules.end();
  });
}

// kInvalidArgument as SetActive.
Status CheckSet(const Board& board, const std::set<int>& ids) {
  std::set<int> modules;
  for (const int id : ids) {
    const BoardPartition* partition = board.FindPartition(id);
    if (partition == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("board ", board.name, " has no partition ", id));
    }
    for (const int module : partition->modules) {
      if (modules.insert(module).second) continue;
      return absl::InvalidArgumentError(absl::StrCat("partition ", id, " shares module ", module,
                                                     " with another one that is to be active"));
    }
  }
  return OkStatus();
}

}  // namespace

ReturnCodes ReturnCodesOf(const Board& board) {
  return board.return_codes == "blackwell" ? ReturnCodes::kBlackwell : ReturnCodes::kHopper;
}

fmReturn Partitions::Activate(int id) {
  const BoardPartition* partition = board_.FindPartition(id);
  if (partition == nullptr) return FM_BADPARAM;
  const bool blackwell = codes_ == ReturnCodes::kBlackwell;
  if (active_.contains(id)) return blackwell ? FM_PARTITION_ID_IN_USE : FM_IN_USE;
  if (HolderOf(*partition) != nullptr) {
    return blackwell ? FM_RESOURCE_USED_IN_ANOTHER_PARTITION : FM_IN_USE;
  }
  active_.insert(id);
  routed_.insert(id);
  return FM_SUCCESS;
}

fmReturn Partitions::Deactivate(int id) {
  if (board_.FindPartition(id) == nullptr) return FM_BADPARAM;
  if (active_.erase(id) == 0) {
    return codes_ == ReturnCodes::kBlackwell ? FM_PARTITION_ID_NOT_IN_USE : FM_UNINITIALIZED;
  }
  routed_.erase(id);
  return FM_SUCCESS;
}

fmReturn Partitions::SetActivated(std::span<const std::uint32_t> ids) {
  if (!waiting_) return FM_GENERIC_ERROR;
  std::set<int> wanted;
  for (const std::uint32_t id : ids) wanted.insert(static_cast<int>(id));
  if (wanted.size() != ids.size() || !CheckSet(board_, wanted).ok()) return FM_BADPARAM;
  waiting_ = false;
  active_ = wanted;
  std::erase_if(routed_, [&](int id) { return !wanted.contains(id); });
  return FM_SUCCESS;
}

Status Partitions::SetActive(const std::set<int>& ids) {
  RETURN_IF_ERROR(CheckSet(board_, ids));
  waiting_ = false;
  active_ = routed_ = ids;
  return OkStatus();
}

void Partitions::RestartWarm() {
  waiting_ = true;
  active_.clear();
}

void Partitions::RestartCold() {
  waiting_ = false;
  active_.clear();
  routed_.clear();
}

const BoardPartition* Partitions::HolderOf(const BoardPartition& partition) const {
  const auto found =
      std::find_if(board_.partitions.begin(), board_.partitions.end(), [&](const auto& other) {
        return active_.contains(other.id) && ShareAModule(other, partition);
      });
  return found == board_.partitions.end() ? nullptr : &*found;
}

}  // namespace switchyard::sim
