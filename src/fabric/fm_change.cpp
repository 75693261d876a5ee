// SPDX-License-Identifier: Apache-2.0
#include "fabric/fm_change.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "fabric/fabric_answer.h"
#include "fabric/fm_errors.h"
#include "fabric/nvfm_codes.h"

namespace switchyard::fabric {
namespace {

using Kind = FabricChange::Kind;

const FabricPartition* Find(const FabricList& list, int id) {
  const auto found = std::find_if(list.partitions.begin(), list.partitions.end(),
                                  [id](const FabricPartition& p) { return p.id == id; });
  return found == list.partitions.end() ? nullptr : &*found;
}

std::set<int> ActiveOf(const FabricList& list) {
  std::set<int> active;
  for (const FabricPartition& partition : list.partitions) {
    if (partition.active) active.insert(partition.id);
  }
  return active;
}

std::string IdsOf(const std::set<int>& ids) {
  return ids.empty() ? "none" : absl::StrJoin(ids, ", ");
}

// Codes that may say no more than "it is so already", or that somebody else has it.
bool SaysAlready(Kind kind, nvfm::Return code) {
  switch (code) {
    case nvfm::kInUse:
    case nvfm::kResourceInUse:
    case nvfm::kPartitionExists:
    case nvfm::kPartitionIdInUse:
    case nvfm::kUsedInThisPartition:
    case nvfm::kUsedInAnotherPartition:
      return kind != Kind::kDeactivate;
    case nvfm::kUninitialized:
    case nvfm::kResourceNotInUse:
    case nvfm::kPartitionIdNotInUse:
      return kind == Kind::kDeactivate;
    default:
      return false;
  }
}

// FM's word with our own reading of it.
Status Refusal(const FabricChange& change, nvfm::Return code, const FabricAddress& address,
               absl::StatusCode status, absl::string_view why) {
  return WithFabricAnswer(
      Status(status, absl::StrCat(Answered(change.function(), code, address), ": ", why)),
      {std::string(change.function()), code});
}

// The ids asked for that FM does not list.
std::set<int> UnknownIds(const FabricChange& change, const FabricList& list) {
  std::set<int> unknown;
  for (const int id : change.partitions) {
    if (Find(list, id) == nullptr) unknown.insert(id);
  }
  return unknown;
}

// "GPU 3 is in the active partition 1; ..." for each GPU that another active partition has. GPUs
// by FM's physical id, which is one space within a list.
std::string Overlaps(const FabricPartition& wanted, const FabricList& list) {
  std::vector<std::string> overlaps;
  for (const FabricPartition& other : list.partitions) {
    if (!other.active || other.id == wanted.id) continue;
    std::vector<unsigned> shared;
    for (const FabricGpu& gpu : wanted.gpus) {
      const bool is_shared =
          std::any_of(other.gpus.begin(), other.gpus.end(),
                      [&](const FabricGpu& o) { return o.physical_id == gpu.physical_id; });
      if (is_shared) shared.push_back(gpu.physical_id);
    }
    if (shared.empty()) continue;
    overlaps.push_back(absl::StrCat("the active partition ", other.id, " has GPU ",
                                    absl::StrJoin(shared, ", "), " of partition ", wanted.id));
  }
  return absl::StrJoin(overlaps, "; ");
}

// FM refused by a code that says "in use" or "not in use", and the list is not as asked for.
Status InUseError(const FabricChange& change, nvfm::Return code, const FabricList& list,
                  const FabricAddress& address) {
  if (change.kind == Kind::kActivate) {
    const std::string overlaps = Overlaps(*Find(list, change.partitions.front()), list);
    if (!overlaps.empty()) {
      return Refusal(change, code, address, absl::StatusCode::kAlreadyExists,
                     absl::StrCat(overlaps, "; that one must be deactivated first"));
    }
  }
  return Refusal(change, code, address, absl::StatusCode::kInternal,
                 absl::StrCat("the list that Fabric Manager gives does not agree (active: ",
                              IdsOf(ActiveOf(list)), "); see its log"));
}

Status UnknownIdError(const FabricChange& change, nvfm::Return code, const std::set<int>& unknown,
                      const FabricAddress& address) {
  return Refusal(change, code, address, absl::StatusCode::kInvalidArgument,
                 absl::StrCat("Fabric Manager's table has no partition ", IdsOf(unknown),
                              "; `switchyard partitions` lists what it has"));
}

// The list could not be read after the call.
Status UnreadError(const FabricChange& change, nvfm::Return code, const Status& list,
                   const FabricAddress& address) {
  if (code == nvfm::kSuccess) {
    Status error =
        Annotate(list, absl::StrCat(change.function(),
                                    " succeeded, and the list that must confirm it can't be read"));
    if (absl::IsUnavailable(error)) return error;
    Status unknown = absl::UnknownError(error.message());
    if (const auto answer = FabricAnswerOf(error)) unknown = WithFabricAnswer(unknown, *answer);
    return unknown;
  }
  // Both calls refused so: one of FM's internal endpoints.
  const auto list_answer = FabricAnswerOf(list);
  if (code == nvfm::kUninitialized && list_answer && list_answer->code == code) return list;
  // While FM waits for this very list, it refuses to be read: its answer to the call stands alone.
  if (change.kind == Kind::kSetActivated && code == nvfm::kBadParam) {
    return Refusal(change, code, address, absl::StatusCode::kInvalidArgument,
                   absl::StrCat("Fabric Manager takes no such list as ",
                                IdsOf({change.partitions.begin(), change.partitions.end()})));
  }
  const bool ambiguous =
      SaysAlready(change.kind, code) || code == nvfm::kUninitialized || code == nvfm::kBadParam;
  if (change.kind == Kind::kSetActivated || !ambiguous) {
    return CallError(change.function(), code, address);
  }
  return Annotate(list, absl::StrCat(Answered(change.function(), code, address),
                                     ", and the list that tells why can't be read"));
}

// FM said success; what is on the list speaks against it.
Status NotShownError(const FabricChange& change, const FabricList& list) {
  return absl::UnknownError(absl::StrCat(
      change.function(), " succeeded, and the list read after it does not show it (asked: ",
      change.ToString(), "; active: ", IdsOf(ActiveOf(list)), "); see Fabric Manager's log"));
}

}  // namespace

Status FabricChange::Validate() const {
  if (kind != Kind::kSetActivated && partitions.size() != 1) {
    return absl::InvalidArgumentError("one partition at a time is activated or deactivated");
  }
  if (partitions.size() > static_cast<std::size_t>(kMaxPartitions)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a list of ", partitions.size(),
                     " active partitions; Fabric Manager has at most ", kMaxPartitions));
  }
  std::set<int> seen;
  for (const int id : partitions) {
    if (id < 0)
      return absl::InvalidArgumentError(absl::StrCat("partition id ", id, " is negative"));
    if (!seen.insert(id).second) {
      return absl::InvalidArgumentError(absl::StrCat("partition ", id, " is listed twice"));
    }
  }
  return OkStatus();
}

absl::string_view FabricChange::function() const {
  switch (kind) {
    case Kind::kActivate:
      return "fmActivateFabricPartition";
    case Kind::kDeactivate:
      return "fmDeactivateFabricPartition";
    case Kind::kSetActivated:
      break;
  }
  return "fmSetActivatedFabricPartitions";
}

std::string FabricChange::ToString() const {
  const std::string ids = IdsOf({partitions.begin(), partitions.end()});
  switch (kind) {
    case Kind::kActivate:
      return absl::StrCat("activate partition ", ids);
    case Kind::kDeactivate:
      return absl::StrCat("deactivate partition ", ids);
    case Kind::kSetActivated:
      break;
  }
  return absl::StrCat("set the active partitions to ", ids);
}

bool FabricChange::ShownBy(const FabricList& list) const {
  const std::set<int> active = ActiveOf(list);
  switch (kind) {
    case Kind::kActivate:
      return active.contains(partitions.front());
    case Kind::kDeactivate:
      return !active.contains(partitions.front());
    case Kind::kSetActivated:
      break;
  }
  return active == std::set<int>(partitions.begin(), partitions.end());
}

bool DecidedByList(nvfm::Return code) {
  switch (nvfm::ReadingOf(code)) {
    case nvfm::Reading::kReconnect:
    case nvfm::Reading::kWrongMode:
    case nvfm::Reading::kAbi:
      return false;
    default:
      return true;
  }
}

Result<FabricList> Settle(const FabricChange& change, nvfm::Return code, Result<FabricList> list,
                          const FabricAddress& address) {
  if (!list.ok()) return UnreadError(change, code, list.status(), address);
  const bool shown = change.ShownBy(*list);
  if (code == nvfm::kSuccess) {
    if (!shown) return NotShownError(change, *list);
    return list;
  }
  const bool already = SaysAlready(change.kind, code);
  const std::set<int> unknown = UnknownIds(change, *list);
  if (!unknown.empty() && (already || code == nvfm::kBadParam)) {
    return UnknownIdError(change, code, unknown, address);
  }
  // A call that FM gave up (a timeout) may have done its work; a fault of the fabric or a code that
  // nobody has documented is no success, whatever the list shows.
  if (shown && (already || nvfm::ReadingOf(code) == nvfm::Reading::kRetry)) return list;
  if (already) return InUseError(change, code, *list, address);
  if (nvfm::ReadingOf(code) != nvfm::Reading::kFabricFault) {
    return CallError(change.function(), code, address);
  }
  return Annotate(CallError(change.function(), code, address),
                  absl::StrCat("asked to ", change.ToString(),
                               " (active after it: ", IdsOf(ActiveOf(*list)), ")"));
}

}  // namespace switchyard::fabric
