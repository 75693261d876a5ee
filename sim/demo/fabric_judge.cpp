// SPDX-License-Identifier: Apache-2.0
#include "sim/demo/fabric_judge.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace switchyard::sim {

bool FabricJudge::Overlap(int a, int b) const {
  const BoardPartition* of_a = board_->FindPartition(a);
  const BoardPartition* of_b = board_->FindPartition(b);
  if (of_a == nullptr || of_b == nullptr) return false;
  return std::any_of(of_a->modules.begin(), of_a->modules.end(), [&](int module) {
    return std::find(of_b->modules.begin(), of_b->modules.end(), module) != of_b->modules.end();
  });
}

void FabricJudge::Has(char who, int partition) {
  must_[who] = partition;
  std::erase_if(may_, [&](int other) { return Overlap(partition, other); });
}

void FabricJudge::Left(char who) {
  const auto found = must_.find(who);
  if (found == must_.end()) return;
  may_.insert(found->second);
  must_.erase(found);
}

void FabricJudge::Lost() {
  must_.clear();
  may_.clear();
}

std::optional<int> FabricJudge::PartitionOf(char who) const {
  const auto found = must_.find(who);
  return found == must_.end() ? std::nullopt : std::optional(found->second);
}

std::set<int> FabricJudge::must() const {
  std::set<int> must;
  for (const auto& [who, partition] : must_) must.insert(partition);
  return must;
}

std::string FabricJudge::Problem(const std::set<int>& active) const {
  for (const auto& [who, partition] : must_) {
    for (const auto& [other, its] : must_) {
      if (who < other && Overlap(partition, its)) {
        return absl::StrCat(std::string(1, who), " and ", std::string(1, other), " share a GPU");
      }
    }
    if (!active.contains(partition)) {
      return absl::StrCat("partition ", partition, " of ", std::string(1, who), " is not active");
    }
  }
  const std::set<int> must = this->must();
  for (const int partition : active) {
    if (!must.contains(partition) && !may_.contains(partition)) {
      return absl::StrCat("partition ", partition, " is active, and nobody has it");
    }
  }
  return "";
}

}  // namespace switchyard::sim
