// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "fabric/planner.h"
#include "fabric/planner_rules.h"

namespace switchyard::fabric {
namespace {

// "1 GPU", "2 GPUs".
std::string Count(int n, absl::string_view noun) {
  return absl::StrCat(n, " ", noun, n == 1 ? "" : "s");
}

// "module 1", "modules 1,2".
std::string Modules(ModuleSet modules) {
  return absl::StrCat(modules.size() == 1 ? "module " : "modules ", modules.ToString());
}

// Who would be joined in active partition `other`; empty if nobody.
std::string Holder(const Partition& other, ModuleSet busy) {
  const ModuleSet held = other.modules & busy;
  if (!held.empty())
    return absl::StrCat(Modules(held), held.size() == 1 ? " is" : " are", " in use");
  return other.complete ? "" : "a GPU has no module id and may be in use";
}

bool OtherActiveOverlaps(const Partition& other, const Partition& partition) {
  return other.active && other.id != partition.id && other.modules.Overlaps(partition.modules);
}

std::string Standing(const PlanRequest& request, const Candidate& candidate) {
  const ModuleSet busy = BusyModules(request);
  std::string text = candidate.partition->active ? "active" : "";
  for (const Partition& other : request.table->partitions) {
    if (!OtherActiveOverlaps(other, *candidate.partition)) continue;
    const std::string holder = Holder(other, busy);
    absl::StrAppend(&text, text.empty() ? "" : "; ",
                    holder.empty() ? "overlaps stale active partition "
                                   : "would join the tenant of active partition ",
                    other.id, " (", holder.empty() ? "all its GPUs are free" : holder, ")");
  }
  return text.empty() ? "free" : text;
}

std::string Broken(const PlanRequest& request, const Candidate& candidate) {
  const ModuleSet busy = BusyModules(request);
  const ModuleSet modules = candidate.partition->modules;
  std::vector<int> ids;
  for (const Partition& other : request.table->partitions) {
    if (other.modules.size() > modules.size() && other.modules.Overlaps(modules) &&
        StillPossible(other, busy, request.usable))
      ids.push_back(other.id);
  }
  if (ids.empty()) return "breaks no larger partition";
  return absl::StrCat("breaks ", Count(static_cast<int>(ids.size()), "larger partition"), " (",
                      absl::StrJoin(ids, ", "), ")");
}

// The partitions that pass all rules but `refuse_joining`, said one by one.
std::string Refused(PlanRequest request) {
  if (!request.refuse_joining) return "";
  request.refuse_joining = false;
  const std::vector<Candidate> candidates = Rank(request);
  return absl::StrJoin(candidates, "; ", [&](std::string* out, const Candidate& c) {
    absl::StrAppend(out, "partition ", c.partition->id, " ", Standing(request, c));
  });
}

}  // namespace

std::string Why(const PlanRequest& request, const Candidate& candidate) {
  int unknown = 0;
  for (ModuleId m : candidate.partition->modules.ToVector())
    unknown += request.numa_node[static_cast<size_t>(m)] < 0 ? 1 : 0;
  std::string why = absl::StrCat(Standing(request, candidate), "; ", Broken(request, candidate),
                                 "; ", Count(candidate.numa_nodes, "NUMA node"));
  if (unknown > 0) absl::StrAppend(&why, " (", Count(unknown, "GPU"), " of unknown node)");
  return why;
}

std::string WhyNone(const PlanRequest& request) {
  if (request.size <= 0) return absl::StrCat("the size is ", request.size, "; ask for at least 1");
  if (request.table->partitions.empty()) return "the partition table is empty";
  if (const ModuleSet missing = request.must_include - request.available; !missing.empty()) {
    return absl::StrCat(Modules(missing), " must be included but ",
                        missing.size() == 1 ? "is" : "are", " not available");
  }

  // Each rule takes partitions away; the first that leaves none is the reason.
  std::set<int> sizes;
  int incomplete = 0;
  bool of_size = false;
  bool with_must_include = false;
  for (const Partition& p : request.table->partitions) {
    const int devices = p.complete ? DevicesIn(p.modules, request.shared_groups) : 0;
    if (!p.complete) ++incomplete;
    if (devices > 0) sizes.insert(devices);
    if (devices != request.size) continue;
    of_size = true;
    if (p.modules.ContainsAll(request.must_include)) with_must_include = true;
  }
  const std::string which = absl::StrCat(
      "no partition has ", Count(request.size, request.shared_groups.empty() ? "GPU" : "device"));
  const std::string hint =
      incomplete == 0 ? ""
                      : absl::StrCat("; not counting ", Count(incomplete, "partition"),
                                     " with a GPU that has no module id: complete the module map");
  if (!of_size) {
    const std::string known = sizes.empty() ? "not known" : absl::StrJoin(sizes, ", ");
    return absl::StrCat(which, "; sizes are ", known, hint);
  }
  if (!with_must_include)
    return absl::StrCat(which, " and contains ", Modules(request.must_include), hint);
  if (const std::string refused = Refused(request); !refused.empty())
    return absl::StrCat(refused, hint);
  const std::string available = request.available.empty()
                                    ? "nothing is available"
                                    : absl::StrCat("available: ", Modules(request.available));
  return absl::StrCat(which,
                      request.must_include.empty()
                          ? ""
                          : absl::StrCat(", contains ", Modules(request.must_include)),
                      " and is free as a whole; ", available, hint);
}

}  // namespace switchyard::fabric
