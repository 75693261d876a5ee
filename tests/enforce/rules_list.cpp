// SPDX-License-Identifier: Apache-2.0
// The active list after a warm restart: it must have whatever runs, and nothing that was not
// active.
#include <algorithm>

#include "tests/enforce/rules.h"

namespace switchyard::enforce_sim {

using fabric::ModuleSet;
using State = tenancy::TenancyState;

void Rules::OnList(std::span<const int> ids) {
  if (!answer_waits)
    stage_.Break(Rule::kWrongList, "an active list is sent, and Fabric Manager asked for none");
  if (fabric_.life != FabricModel::Life::kWaiting) return;  // any more
  ModuleSet sent;
  for (const int id : ids) {
    const Row* row = fabric_.Find(id);
    if (row == nullptr) continue;
    if (sent.Overlaps(row->modules))
      stage_.Break(Rule::kWrongList, "partition ", id, " overlaps another of the list");
    sent = sent | row->modules;
  }
  for (const Row& row : fabric_.rows()) {
    if (std::find(ids.begin(), ids.end(), row.id) == ids.end()) {
      if (row.active) LeftOut(row, sent);
    } else if (!row.active) {
      Revived(row);
    }
  }
}

Rules::Seen Rules::SeenTenancies() const {
  Seen seen;
  if (!list_read || enforcer == nullptr || !enforcer->FabricStatus().ok() ||
      !enforcer->JournalStatus().ok())
    return seen;
  for (const auto& [id, record] : journal_.records) {
    if (record.state != State::kActive || record.boot != boot) continue;
    ModuleSet& its = BelievesIn(record.modules) ? seen.active : seen.lost;
    its = its | record.modules;
  }
  return seen;
}

void Rules::Wrote(const Seen& seen) {
  for (const Row& row : fabric_.rows()) {
    if (journal_.FindExact(row.modules) == nullptr) continue;
    Row* const known = fabric_.Find(row.id);
    if (seen.active.ContainsAll(row.modules)) known->known_lost = false;
    if (seen.lost.ContainsAll(row.modules) && !row.active) known->known_lost = true;
  }
}

// An active partition that the list does not have, which `sent` has.
void Rules::LeftOut(const Row& row, ModuleSet sent) {
  if (Unseen(row)) return;
  const TenancyRecord* record = journal_.FindExact(row.modules);
  const bool ours = record != nullptr && record->state == State::kActive && record->boot == boot;
  // What is only activating was given to nobody yet.
  const bool activating = record != nullptr && record->state == State::kActivating;
  const ModuleSet held = hardware_.Held() - hardware_.HeldBy(0);
  const bool used = (activating ? held : kubelet_.Live()).Overlaps(row.modules);
  // Active again, and that could not be written: the journal is all that a new agent has.
  if (!list_read && record != nullptr && record->lost) return;
  if (row.found) {
    // Beside a tenancy of ours it can't stay.
    if (sent.Overlaps(row.modules)) return;
    // An agent that never read the list knows what it remembers and who holds what.
    if (!list_read && !hardware_.Held().Overlaps(row.modules)) return;
    // Whoever is held must be in some partition of the list, if nothing else is known.
    const bool nothing_known = journal_.records.empty() || !journal_.corrupt.empty();
    const bool covered = sent.ContainsAll(hardware_.Held() & row.modules);
    if (!list_read && !Believed(row) && (!nothing_known || covered)) return;
  } else if (!ours && !used) {
    return;
  }
  stage_.Break(Rule::kWrongList, "partition ", row.id, " (", row.modules,
               ") is active and left out of the list; ", Who(row.modules));
}

// A partition that the list has, and that was not active.
void Rules::Revived(const Row& row) {
  const auto users = std::count_if(kubelet_.pods.begin(), kubelet_.pods.end(), [&](const Pod& pod) {
    return kubelet_.LiveOf(pod).Overlaps(row.modules);
  });
  // Two that a predecessor put into one partition are as they were.
  const bool before = row.was_found && Believed(row);
  if (users > 1 && !before)
    stage_.Break(Rule::kJoined, "partition ", row.id, " (", row.modules,
                 ") is activated by the list; ", Who(row.modules));
  if (const TenancyRecord* record = journal_.FindExact(row.modules)) {
    if (row.known_lost && record->state == State::kActive && record->boot == boot &&
        !(list_read && Believed(row)))
      stage_.Break(Rule::kWrongList, "partition ", row.id, " (", row.modules,
                   ") was lost, as an agent knew, and is in the list");
    return;
  }
  fabric_.Find(row.id)->was_found = true;  // nobody of ours will clean it up
  // Changed by somebody else, or by a call of ours that got no answer.
  if (Unseen(row) || before) return;
  // Without journal and list the best that can be known is a list that is remembered, or the pods
  // that kubelet lists.
  const bool listed = std::any_of(told_.begin(), told_.end(),
                                  [&](const auto& pod) { return pod.second == row.modules; });
  if (!list_read && (listed || Believed(row))) return;
  stage_.Break(Rule::kWrongList, "partition ", row.id,
               " is in the list, was not active, and is no tenancy's");
}

}  // namespace switchyard::enforce_sim
