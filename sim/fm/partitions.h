// SPDX-License-Identifier: Apache-2.0
#pragma once

// The simulated fabric's state and rules: which partitions Fabric Manager calls active, and which
// ones the switches route. The two differ after a warm restart, until the list of active partitions
// comes. No thread safety of its own; FabricManager guards it.

#include <set>
#include <span>

#include "base/status.h"
#include "sim/board/board.h"
#include "sim/fm/abi.h"

namespace switchyard::sim {

// Which generation's codes say that a partition is in use, or is not.
enum class ReturnCodes { kHopper, kBlackwell };

[[nodiscard]] ReturnCodes ReturnCodesOf(const Board& board);

class Partitions {
 public:
  // `board` must outlive this.
  Partitions(const Board& board, ReturnCodes codes) : board_(board), codes_(codes) {}

  // Of an id that the board has.
  [[nodiscard]] fmReturn Activate(int id);
  [[nodiscard]] fmReturn Deactivate(int id);
  // Ends the waiting. Ids that are left out lose their routing; one that was not routed is listed
  // as active and carries no traffic, which is what a wrong list gets. FM_GENERIC_ERROR if nobody
  // waits: what the real one does is not documented.
  [[nodiscard]] fmReturn SetActivated(std::span<const std::uint32_t> ids);

  // Exactly these, in FM's view and in the switches; ends the waiting. kInvalidArgument for an id
  // that the board lacks, or two that share a GPU.
  [[nodiscard]] Status SetActive(const std::set<int>& ids);

  void RestartWarm();  // routing stays; FM waits for the list
  void RestartCold();  // all is inactive

  [[nodiscard]] bool waiting() const { return waiting_; }
  [[nodiscard]] const std::set<int>& active() const { return active_; }
  [[nodiscard]] const std::set<int>& routed() const { return routed_; }

 private:
  // The active partition that has a GPU of `partition`; null if there is none.
  [[nodiscard]] const BoardPartition* HolderOf(const BoardPartition& partition) const;

  const Board& board_;
  const ReturnCodes codes_;
  bool waiting_ = false;
  std::set<int> active_;  // FM's view; empty while it waits
  std::set<int> routed_;
};

}  // namespace switchyard::sim
